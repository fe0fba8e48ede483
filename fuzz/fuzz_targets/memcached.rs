//! Fuzzes the memcached protocol: `cargo +nightly fuzz run memcached`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wollemi_server::fuzzing::memcached(input));
