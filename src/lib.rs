//! The decisions of evenkeel, an LLM API client reliability layer.

pub mod body;
pub mod class;
pub mod control;
pub mod headers;
pub mod protocol;
pub mod request;
pub mod time;
