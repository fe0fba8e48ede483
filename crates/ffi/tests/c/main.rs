//! The library as C programs use it: the header, the examples, misuse, kills, and what is installed.

mod compiler;
mod header;
mod install;
mod kill;
mod programs;
