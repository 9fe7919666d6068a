//! The decisions of evenkeel, an LLM API client reliability layer.
//!
//! In scope: what a failure is ([`classify`]), how long to wait ([`wait_hint`], [`backoff`]), how much time is left
//! ([`deadline`]), whether to try again ([`call`]), what outlives a call ([`control`]), where a stream stands
//! ([`stream`]), and what goes on record ([`ledger`]). Out of scope: I/O, clocks, randomness, and translating between
//! providers' protocols. `now` and random numbers are arguments.
//!
//! The map: [`engine`] holds everything one keel has; a driver gives it what happened and does what it answers. The
//! `host` module (wasm32 only) is the engine's face to JavaScript.

#![cfg_attr(all(target_arch = "wasm32", feature = "module"), no_std)]

extern crate alloc;

/// What `std`'s prelude has and `core`'s has not.
mod prelude {
    pub(crate) use alloc::borrow::ToOwned;
    pub(crate) use alloc::boxed::Box;
    pub(crate) use alloc::string::String;
    pub(crate) use alloc::vec;
    pub(crate) use alloc::vec::Vec;
}

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
mod random;
pub mod request;
pub mod settings;
pub mod stream;
mod text;
pub mod time;
pub mod ulid;
pub mod usage;
pub mod wait_hint;

#[cfg(all(target_arch = "wasm32", feature = "module"))]
mod host;

/// What `std` would bring along: an allocator, smaller than `std`'s and no hungrier, and a panic that traps without a message.
/// What formats messages that nobody sees would be several kilobytes.
#[cfg(all(target_arch = "wasm32", feature = "module"))]
mod runtime {
    #[global_allocator]
    static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}
