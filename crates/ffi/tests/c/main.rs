//! The library as C programs use it: the header, the examples, misuse, kills, and an installation.

mod compiler;
mod header;
mod install;
mod kill;
mod pmemkv;
mod programs;
