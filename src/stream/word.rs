//! Names of members, events and finish reasons as numbers: hashed once when read, compared as constants.
//!
//! Comparing byte strings in a `match` costs a chain of byte comparisons an arm, five times the size in wasm and slower; a
//! 64-bit hash costs one multiplication for eight bytes. Two of the names below can't collide (the match arms would be
//! reported); an unknown name that hits one of them by chance is one in 10¹⁷.

/// A hashed name.
pub(crate) type Word = u64;

/// Hashes a name.
#[inline]
pub(crate) const fn word(name: &[u8]) -> Word {
    let mut rest = name;
    let mut hash = mix(0x9E37_79B9_7F4A_7C15, name.len() as u64);
    while let Some((eight, behind)) = rest.split_first_chunk::<8>() {
        hash = mix(hash, u64::from_le_bytes(*eight));
        rest = behind;
    }
    let mut tail = 0_u64;
    if let Some((four, behind)) = rest.split_first_chunk::<4>() {
        tail = u32::from_le_bytes(*four) as u64;
        rest = behind;
    }
    while let Some((byte, behind)) = rest.split_first() {
        tail = (tail << 8) | *byte as u64;
        rest = behind;
    }
    mix(hash, tail)
}

#[inline]
const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}

/// Names a word: `words! { USAGE = "usage"; }`.
macro_rules! words {
    ($($name:ident = $text:literal;)*) => { $(pub(crate) const $name: Word = word($text.as_bytes());)* };
}

words! {
    // What has no name: the empty string.
    NONE = "";
    // Members of everybody's.
    ERROR = "error"; MESSAGE = "message"; MODEL = "model"; OBJECT = "object"; TYPE = "type"; USAGE = "usage"; CONTENT = "content";
    TEXT = "text"; THINKING = "thinking"; DELTA = "delta"; INDEX = "index"; STATUS = "status"; RESPONSE = "response"; REASON = "reason";
    TOOL_CALLS = "tool_calls"; IMAGES = "images"; FINISH_REASON = "finish_reason";
    // OpenAI and compatible.
    CHOICES = "choices"; REASONING_CONTENT = "reasoning_content"; REASONING = "reasoning"; REASONING_DETAILS = "reasoning_details";
    REFUSAL = "refusal"; AUDIO = "audio"; FUNCTION_CALL = "function_call"; X_GROQ = "x_groq"; TOKEN = "token";
    GENERATED_TEXT = "generated_text";
    // OpenAI Responses and images.
    PARTIAL_IMAGE_B64 = "partial_image_b64"; INCOMPLETE_DETAILS = "incomplete_details"; RESPONSE_COMPLETED = "response.completed";
    RESPONSE_INCOMPLETE = "response.incomplete"; RESPONSE_FAILED = "response.failed"; RESPONSE_CANCELLED = "response.cancelled";
    RESPONSE_ERROR = "response.error"; IMAGE_GENERATION_COMPLETED = "image_generation.completed";
    IMAGE_EDIT_COMPLETED = "image_edit.completed";
    // Anthropic.
    CONTENT_BLOCK = "content_block"; CONTENT_BLOCK_DELTA = "content_block_delta"; CONTENT_BLOCK_START = "content_block_start";
    MESSAGE_STOP = "message_stop"; PING = "ping"; STOP_REASON = "stop_reason"; PARTIAL_JSON = "partial_json"; CITATION = "citation";
    // Other models on Bedrock, and Bedrock itself.
    COMPLETION = "completion"; GENERATION = "generation"; OUTPUT_TEXT = "outputText"; OUTPUTS = "outputs";
    COMPLETION_REASON = "completionReason"; STOP_REASON_CAMEL = "stopReason"; BLOCK_START = "contentBlockStart";
    BLOCK_DELTA = "contentBlockDelta"; MESSAGE_STOP_CAMEL = "messageStop"; METADATA = "metadata"; BYTES = "bytes"; START = "start";
    INVOCATION_METRICS = "amazon-bedrock-invocationMetrics"; TOOL_USE = "toolUse"; REASONING_CONTENT_CAMEL = "reasoningContent";
    MESSAGE_UPPER = "Message"; AWS_TYPE = "__type"; HEADERS = "headers"; MESSAGE_TYPE = ":message-type"; EXCEPTION = "exception";
    EVENT_TYPE_HEADER = ":event-type"; EXCEPTION_TYPE = ":exception-type"; ERROR_CODE = ":error-code"; ERROR_MESSAGE = ":error-message";
    // Gemini.
    CANDIDATES = "candidates"; USAGE_METADATA = "usageMetadata"; MODEL_VERSION = "modelVersion"; PROMPT_FEEDBACK = "promptFeedback";
    BLOCK_REASON = "blockReason"; BLOCK_REASON_UNSPECIFIED = "BLOCK_REASON_UNSPECIFIED"; PARTS = "parts"; THOUGHT = "thought";
    FINISH_REASON_CAMEL = "finishReason"; FINISH_REASON_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"; FUNCTION_CALL_CAMEL = "functionCall";
    INLINE_DATA = "inlineData"; FILE_DATA = "fileData"; EXECUTABLE_CODE = "executableCode"; CODE_RESULT = "codeExecutionResult";
    EVENT_TYPE = "event_type"; INTERACTION = "interaction"; INTERACTION_COMPLETE = "interaction.complete";
    INTERACTION_COMPLETED = "interaction.completed";
    // Cohere.
    CONTENT_DELTA = "content-delta"; TOOL_PLAN_DELTA = "tool-plan-delta"; TOOL_CALL_START = "tool-call-start";
    TOOL_CALL_DELTA = "tool-call-delta"; MESSAGE_END = "message-end";
    // Ollama.
    DONE = "done"; DONE_REASON = "done_reason"; PROMPT_EVAL_COUNT = "prompt_eval_count"; EVAL_COUNT = "eval_count";
    // Tokens, in everybody's spelling.
    PROMPT_TOKENS = "prompt_tokens"; INPUT_TOKENS = "input_tokens"; PROMPT_TOKEN_COUNT = "promptTokenCount";
    INPUT_TOKENS_CAMEL = "inputTokens"; INPUT_TOKEN_COUNT = "inputTokenCount"; TOTAL_INPUT_TOKENS = "total_input_tokens";
    COMPLETION_TOKENS = "completion_tokens"; OUTPUT_TOKENS = "output_tokens"; CANDIDATES_TOKEN_COUNT = "candidatesTokenCount";
    OUTPUT_TOKENS_CAMEL = "outputTokens"; OUTPUT_TOKEN_COUNT = "outputTokenCount"; TOTAL_OUTPUT_TOKENS = "total_output_tokens";
    CACHED_TOKENS = "cached_tokens"; CACHE_READ_INPUT_TOKENS = "cache_read_input_tokens";
    CACHED_CONTENT_TOKEN_COUNT = "cachedContentTokenCount"; CACHE_READ_INPUT_TOKENS_CAMEL = "cacheReadInputTokens";
    PROMPT_CACHE_HIT_TOKENS = "prompt_cache_hit_tokens"; TOTAL_CACHED_TOKENS = "total_cached_tokens";
    REASONING_TOKENS = "reasoning_tokens"; THOUGHTS_TOKEN_COUNT = "thoughtsTokenCount"; TOTAL_THOUGHT_TOKENS = "total_thought_tokens";
    PROMPT_TOKENS_DETAILS = "prompt_tokens_details"; COMPLETION_TOKENS_DETAILS = "completion_tokens_details";
    INPUT_TOKENS_DETAILS = "input_tokens_details"; OUTPUT_TOKENS_DETAILS = "output_tokens_details"; TOKENS = "tokens";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_anywhere_differ_as_words() {
        let name = b"prompt_tokens_details";
        for at in 0..name.len() {
            let mut other = *name;
            other[at] ^= 1;
            assert_ne!(word(&other), PROMPT_TOKENS_DETAILS, "byte {at}");
            assert_ne!(word(&name[..at]), PROMPT_TOKENS_DETAILS, "length {at}");
        }
        assert_eq!(word(name), PROMPT_TOKENS_DETAILS);
        assert_ne!(word(b"\0"), NONE);
    }
}
