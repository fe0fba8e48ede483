//! Fuzzes the Redis protocol: `cargo +nightly fuzz run redis`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| wollemi_server::fuzzing::redis(input));
