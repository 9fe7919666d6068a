//! The decisions of evenkeel, an LLM API client reliability layer.

pub mod class;
pub mod classify;
pub mod dates;
pub mod headers;
pub mod json;
pub mod limits;
pub mod protocol;
pub mod time;
pub mod usage;
pub mod wait_hint;
