//! The list of indexes, and properties of every index in it.

mod guards;
mod kinds;
mod papers_page;
