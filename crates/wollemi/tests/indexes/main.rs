//! The list of indexes, and properties of the indexes in it.

mod guards;
mod kinds;
mod papers_page;
