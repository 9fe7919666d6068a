//! The decisions of evenkeel, an LLM API client reliability layer.

pub mod backoff;
pub mod body;
pub mod class;
pub mod control;
pub mod deadline;
pub mod headers;
pub mod protocol;
pub mod request;
pub mod time;
