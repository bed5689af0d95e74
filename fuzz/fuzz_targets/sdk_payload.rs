//! Reads arbitrary bytes as a message of a Nacos SDK. The same body runs on stable Rust with proptest:
//! `wire::sdk::tests::no_payload_panics`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| nomina::wire::sdk::probe_payload(bytes));
