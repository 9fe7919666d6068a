//! One record of 39 fields, as an attempt has them, handed to JavaScript in three ways.

use serde::Serialize;
use wasm_bindgen::prelude::*;

macro_rules! record {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        #[derive(Serialize)]
        struct Record { $($name: $kind),* }

        fn record() -> Record { Record { $($name: $value),* } }

        /// Fields in a fixed order, separated by U+001F; an absent value is an empty field.
        fn pack(record: &Record, out: &mut String) {
            $(record.$name.push(out); out.push('\u{1f}');)*
        }
    };
}

trait Push {
    fn push(&self, out: &mut String);
}

impl Push for &str {
    fn push(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Push for u32 {
    fn push(&self, out: &mut String) {
        let mut digits = [0_u8; 10];
        let (mut rest, mut at) = (*self, digits.len());
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        out.push_str(core::str::from_utf8(&digits[at..]).unwrap_or(""));
    }
}

impl<T: Push> Push for Option<T> {
    fn push(&self, out: &mut String) {
        if let Some(value) = self {
            value.push(out);
        }
    }
}

record! {
    logical_request_id: &'static str = "01KB9Y6V5R4V9S6ZK2T8N1QXWM"; attempt_id: &'static str = "01KB9Y6V5R4V9S6ZK2T8N1QXWN";
    attempt_no: u32 = 1; rung: &'static str = "primary"; user_or_tenant_id: Option<&'static str> = None;
    operation_type: Option<&'static str> = None; provider: &'static str = "openai"; protocol: &'static str = "openai.chat";
    model: Option<&'static str> = Some("gpt-5"); bucket: &'static str = "openai/gpt-5";
    prompt_hash: Option<&'static str> = Some("0123456789abcdef0123456789abcdef"); input_token_estimate: Option<u32> = Some(55);
    max_output_tokens: Option<u32> = Some(512); client_timeout_ms: u32 = 60_000; started_at: u32 = 1_795_996_800;
    finished_at: u32 = 1_795_996_801; queue_ms: u32 = 0; latency_ms: u32 = 412; first_byte_ms: Option<u32> = Some(405);
    first_token_ms: Option<u32> = None; status: &'static str = "succeeded"; delivery: &'static str = "answered";
    http_status: Option<u32> = Some(200); error_class: Option<&'static str> = None; reason: Option<&'static str> = None;
    rule: Option<&'static str> = None; decision: &'static str = "return"; retry_after_ms: Option<u32> = None;
    backoff_ms: Option<u32> = None; provider_request_id: Option<&'static str> = Some("req_8f14e45fceea167a5a36dedd4bea2543");
    served_model: Option<&'static str> = Some("gpt-5-2026-08-07"); input_token_count: Option<u32> = Some(38);
    output_token_count: Option<u32> = Some(17); cached_token_count: Option<u32> = None; reasoning_token_count: Option<u32> = None;
    finish_reason: Option<&'static str> = None; terminal_marker: Option<u32> = None; longest_gap_ms: Option<u32> = None;
    bytes: u32 = 412;
}

/// As an object, by serde-wasm-bindgen: every name and every value crosses by itself.
#[wasm_bindgen(js_name = asObject)]
pub fn as_object() -> JsValue {
    serde_wasm_bindgen::to_value(&record()).unwrap_or(JsValue::NULL)
}

/// As JSON, for `JSON.parse`.
#[wasm_bindgen(js_name = asJson)]
pub fn as_json() -> String {
    serde_json::to_string(&record()).unwrap_or_default()
}

/// As one string of fields.
#[wasm_bindgen(js_name = asPacked)]
pub fn as_packed() -> String {
    let mut out = String::with_capacity(512);
    pack(&record(), &mut out);
    out
}
