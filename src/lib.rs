//! The decisions of evenkeel, an LLM API client reliability layer.
//!
//! In scope: what a failure is ([`classify`]), how long to wait ([`wait_hint`], [`backoff`]), how much time is left
//! ([`deadline`]), whether to try again ([`call`]), what outlives a call ([`control`]), where a stream stands
//! ([`stream`]), and what goes on record ([`ledger`]). Out of scope: I/O, clocks, randomness, and translating between
//! providers' protocols. `now` and random numbers are arguments.
//!
//! The map: [`engine`] holds everything one keel has; a driver gives it what happened and does what it answers. The
//! `host` module (wasm32 only) is the engine's face to JavaScript.

pub mod backoff;
pub mod body;
pub mod call;
pub mod class;
pub mod classify;
pub mod control;
pub mod dates;
pub mod deadline;
pub mod drift;
pub mod engine;
pub mod headers;
pub mod joins;
pub mod json;
pub mod ledger;
pub mod limits;
mod order;
pub mod outlook;
pub mod policy;
pub mod protocol;
pub mod request;
pub mod settings;
pub mod stream;
pub mod time;
pub mod ulid;
pub mod usage;
pub mod wait_hint;

#[cfg(target_arch = "wasm32")]
mod host;
