//! Measures how fast the file system makes small appends to a preallocated file durable.
//!
//! ```sh
//! cargo run --release -p wollemi-log --example raw -- DIRECTORY [SECONDS]
//! ```
//!
//! The last row is the log itself, over the same directory, to be compared with the rows above. Each way is measured
//! with one thread that waits for each record, with 8 and 64 threads that wait in groups, and with one thread that
//! waits for 64 records at a time; then without waiting at all. Rounds alternate between the ways, and the best round
//! of each counts.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() {
    linux::measure_all();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("the example `raw` runs on Linux only");
    std::process::exit(2);
}
