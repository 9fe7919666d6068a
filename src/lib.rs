//! The decisions of evenkeel, an LLM API client reliability layer.

pub mod class;
pub mod headers;
pub mod protocol;
pub mod stream;
pub mod time;
