//! Fuzzes the JSON array scanner with the protocols that use it.
#![no_main]

use evenkeel::protocol::Protocol;
use libfuzzer_sys::fuzz_target;

#[path = "stream_split.rs"]
mod split;

const PROTOCOLS: &[Protocol] = &[Protocol::GeminiGenerate, Protocol::OpenAiChat];

fuzz_target!(|data: &[u8]| split::check(data, PROTOCOLS, "application/json"));
