//! The list of indexes, and what holds of every index in it.

mod guards;
mod kinds;
mod papers_page;
