//! Names of members, events and finish reasons as one small number each: looked up once when read, compared for free.
//!
//! Comparing byte strings in a `match` costs a chain of byte comparisons an arm: slower, and three times the size in wasm.
//! The look-up goes by a 32-bit hash in a table that the compiler builds. No two names below have the same hash (it does not
//! compile otherwise); that an unknown name has one of theirs, in the right place, is one chance in 4 billion.

/// Declares [`Word`] with its names.
macro_rules! words {
    ($($name:ident = $text:literal;)*) => {
        /// A name that means something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Word {
            /// A name that means nothing.
            Other,
            $($name),*
        }

        /// Every word with its hash, in the order of the enum.
        const WORDS: &[(Word, u32)] = &[(Word::Other, 0), $((Word::$name, hash($text.as_bytes()))),*];
    };
}

#[rustfmt::skip]
words! {
    // The empty string, and what is no string.
    None = "";
    // Members of everybody's.
    Error = "error"; Message = "message"; Model = "model"; Object = "object"; Type = "type"; Usage = "usage"; Content = "content";
    Text = "text"; Thinking = "thinking"; Delta = "delta"; Index = "index"; Status = "status"; Response = "response"; Reason = "reason";
    ToolCalls = "tool_calls"; Images = "images"; FinishReason = "finish_reason";
    // OpenAI and compatible.
    Choices = "choices"; ReasoningContent = "reasoning_content"; Reasoning = "reasoning"; ReasoningDetails = "reasoning_details";
    Refusal = "refusal"; Audio = "audio"; FunctionCall = "function_call"; XGroq = "x_groq"; Token = "token";
    GeneratedText = "generated_text";
    // OpenAI Responses and images.
    PartialImageB64 = "partial_image_b64"; IncompleteDetails = "incomplete_details"; ResponseCompleted = "response.completed";
    ResponseIncomplete = "response.incomplete"; ResponseFailed = "response.failed"; ResponseCancelled = "response.cancelled";
    ResponseError = "response.error"; ImageGenerationCompleted = "image_generation.completed";
    ImageEditCompleted = "image_edit.completed";
    // Anthropic.
    ContentBlock = "content_block"; ContentBlockDelta = "content_block_delta"; ContentBlockStart = "content_block_start";
    MessageStop = "message_stop"; Ping = "ping"; StopReason = "stop_reason"; PartialJson = "partial_json"; Citation = "citation";
    // Other models on Bedrock, and Bedrock itself.
    Completion = "completion"; Generation = "generation"; OutputText = "outputText"; Outputs = "outputs";
    CompletionReason = "completionReason"; StopReasonCamel = "stopReason"; BlockStart = "contentBlockStart";
    BlockDelta = "contentBlockDelta"; MessageStopCamel = "messageStop"; Metadata = "metadata"; Bytes = "bytes"; Start = "start";
    InvocationMetrics = "amazon-bedrock-invocationMetrics"; ToolUse = "toolUse"; ReasoningContentCamel = "reasoningContent";
    MessageUpper = "Message"; AwsType = "__type"; Headers = "headers"; MessageType = ":message-type"; Exception = "exception";
    EventTypeHeader = ":event-type"; ExceptionType = ":exception-type"; ErrorCode = ":error-code"; ErrorMessage = ":error-message";
    // Gemini.
    Candidates = "candidates"; UsageMetadata = "usageMetadata"; ModelVersion = "modelVersion"; PromptFeedback = "promptFeedback";
    BlockReason = "blockReason"; BlockReasonUnspecified = "BLOCK_REASON_UNSPECIFIED"; Parts = "parts"; Thought = "thought";
    FinishReasonCamel = "finishReason"; FinishReasonUnspecified = "FINISH_REASON_UNSPECIFIED"; FunctionCallCamel = "functionCall";
    InlineData = "inlineData"; FileData = "fileData"; ExecutableCode = "executableCode"; CodeResult = "codeExecutionResult";
    EventType = "event_type"; Interaction = "interaction"; InteractionComplete = "interaction.complete";
    InteractionCompleted = "interaction.completed";
    // Cohere.
    ContentDelta = "content-delta"; ToolPlanDelta = "tool-plan-delta"; ToolCallStart = "tool-call-start";
    ToolCallDelta = "tool-call-delta"; MessageEnd = "message-end";
    // Ollama.
    Done = "done"; DoneReason = "done_reason"; PromptEvalCount = "prompt_eval_count"; EvalCount = "eval_count";
    // Tokens, in everybody's spelling.
    PromptTokens = "prompt_tokens"; InputTokens = "input_tokens"; PromptTokenCount = "promptTokenCount";
    InputTokensCamel = "inputTokens"; InputTokenCount = "inputTokenCount"; TotalInputTokens = "total_input_tokens";
    CompletionTokens = "completion_tokens"; OutputTokens = "output_tokens"; CandidatesTokenCount = "candidatesTokenCount";
    OutputTokensCamel = "outputTokens"; OutputTokenCount = "outputTokenCount"; TotalOutputTokens = "total_output_tokens";
    CachedTokens = "cached_tokens"; CacheReadInputTokens = "cache_read_input_tokens";
    CachedContentTokenCount = "cachedContentTokenCount"; CacheReadInputTokensCamel = "cacheReadInputTokens";
    PromptCacheHitTokens = "prompt_cache_hit_tokens"; TotalCachedTokens = "total_cached_tokens";
    ReasoningTokens = "reasoning_tokens"; ThoughtsTokenCount = "thoughtsTokenCount"; TotalThoughtTokens = "total_thought_tokens";
    PromptTokensDetails = "prompt_tokens_details"; CompletionTokensDetails = "completion_tokens_details";
    InputTokensDetails = "input_tokens_details"; OutputTokensDetails = "output_tokens_details"; Tokens = "tokens";
    // Finish reasons that are no success; `Refusal` and `Error` stand above.
    ContentFilter = "content_filter"; Safety = "SAFETY"; Recitation = "RECITATION"; Blocklist = "BLOCKLIST";
    ProhibitedContent = "PROHIBITED_CONTENT"; Spii = "SPII"; ModelArmor = "MODEL_ARMOR"; ImageSafety = "IMAGE_SAFETY";
    ImageProhibitedContent = "IMAGE_PROHIBITED_CONTENT"; ImageRecitation = "IMAGE_RECITATION";
    GuardrailIntervened = "guardrail_intervened"; ContentFiltered = "content_filtered";
    FinishContentFiltered = "CONTENT_FILTERED"; ErrorToxic = "ERROR_TOXIC"; Sensitive = "sensitive";
    MalformedFunctionCall = "MALFORMED_FUNCTION_CALL"; UnexpectedToolCall = "UNEXPECTED_TOOL_CALL";
    MalformedResponse = "MALFORMED_RESPONSE"; NoImage = "NO_IMAGE"; ImageOther = "IMAGE_OTHER";
    MalformedModelOutput = "malformed_model_output"; MalformedToolUse = "malformed_tool_use";
    InsufficientSystemResource = "insufficient_system_resource"; NetworkError = "network_error";
    FinishError = "ERROR"; Timeout = "TIMEOUT"; Failed = "failed"; Cancelled = "cancelled";
}

/// Slots of the look-up table: a power of two, at least twice the words.
const SLOTS: usize = 512;

const HASHES: [u32; WORDS.len()] = hashes();
const TABLE: [Word; SLOTS] = table();

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn hashes() -> [u32; WORDS.len()] {
    let mut hashes = [0; WORDS.len()];
    let mut i = 1;
    while i < WORDS.len() {
        hashes[i] = WORDS[i].1;
        i += 1;
    }
    hashes
}

#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated by the compiler")]
const fn table() -> [Word; SLOTS] {
    let mut table = [Word::Other; SLOTS];
    let mut i = 1;
    while i < WORDS.len() {
        let (word, hash) = WORDS[i];
        let mut slot = hash as usize % SLOTS;
        while table[slot] as u8 != Word::Other as u8 {
            assert!(HASHES[table[slot] as usize] != hash, "two words have the same hash");
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = word;
        i += 1;
    }
    table
}

/// Looks a name up.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline)]
pub(crate) fn word(name: &[u8]) -> Word {
    let hash = hash(name);
    let mut slot = hash as usize;
    loop {
        match TABLE.get(slot % SLOTS) {
            None | Some(Word::Other) => return Word::Other,
            Some(word) if HASHES.get(*word as usize).is_some_and(|own| *own == hash) => return *word,
            Some(_) => slot = slot.wrapping_add(1),
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "a hash is cut to its low half on purpose")]
const fn hash(name: &[u8]) -> u32 {
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
    mix(hash, tail) as u32
}

#[inline]
const fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_its_neighbours_are_not() {
        for (text, expected) in [
            ("", Word::None),
            ("id", Word::Other),
            ("error", Word::Error),
            ("prompt_tokens_details", Word::PromptTokensDetails),
            ("SAFETY", Word::Safety),
        ] {
            assert_eq!(word(text.as_bytes()), expected, "{text}");
        }
        let name = b"prompt_tokens_details";
        for at in 0..name.len() {
            let mut other = *name;
            other[at] ^= 1;
            assert_eq!(word(&other), Word::Other, "byte {at}");
        }
        assert_eq!(word(b"\0"), Word::Other);
    }

    #[test]
    fn the_table_is_half_empty() {
        assert!(WORDS.len() < SLOTS / 2);
        assert!(WORDS.len() < 256);
    }
}
