//! The wire protocols that requests are written in.

/// The API shape of a request: who parses the body, what ends a stream, how an error is written.
///
/// Names are the public ones of the `protocol` option, e.g. `openai.chat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// `POST …/chat/completions` of OpenAI and everyone compatible with it.
    OpenAiChat,
    /// `POST …/responses` of OpenAI.
    OpenAiResponses,
    /// `POST …/completions`, the legacy text completions.
    OpenAiCompletions,
    /// `POST …/embeddings` in OpenAI's shape.
    OpenAiEmbeddings,
    /// `POST …/images/…` in OpenAI's shape.
    OpenAiImages,
    /// `POST …/v1/messages` of Anthropic.
    AnthropicMessages,
    /// `…:generateContent` and `…:streamGenerateContent` of Gemini and Vertex.
    GeminiGenerate,
    /// The Gemini Interactions API.
    GeminiInteractions,
    /// Bedrock `…/converse`.
    BedrockConverse,
    /// Bedrock `…/converse-stream`.
    BedrockConverseStream,
    /// Bedrock `…/invoke`.
    BedrockInvoke,
    /// Bedrock `…/invoke-with-response-stream`.
    BedrockInvokeStream,
    /// Mistral's `…/chat/completions`.
    MistralChat,
    /// Cohere's `…/v2/chat`.
    CohereChat,
    /// Ollama's `…/api/chat` and `…/api/generate`.
    OllamaChat,
    /// Cloudflare Workers AI `…/ai/run/…`.
    WorkersAiRun,
    /// Hugging Face serverless inference.
    HuggingFaceInference,
    /// Text Generation Inference `…/generate`.
    TgiGenerate,
    /// Anything else: bytes, status and headers are all that is known.
    #[default]
    Unknown,
}

/// Every protocol with its public name.
const NAMES: &[(Protocol, &str)] = &[
    (Protocol::OpenAiChat, "openai.chat"),
    (Protocol::OpenAiResponses, "openai.responses"),
    (Protocol::OpenAiCompletions, "openai.completions"),
    (Protocol::OpenAiEmbeddings, "openai.embeddings"),
    (Protocol::OpenAiImages, "openai.images"),
    (Protocol::AnthropicMessages, "anthropic.messages"),
    (Protocol::GeminiGenerate, "gemini.generate"),
    (Protocol::GeminiInteractions, "gemini.interactions"),
    (Protocol::BedrockConverse, "bedrock.converse"),
    (Protocol::BedrockConverseStream, "bedrock.converse-stream"),
    (Protocol::BedrockInvoke, "bedrock.invoke"),
    (Protocol::BedrockInvokeStream, "bedrock.invoke-stream"),
    (Protocol::MistralChat, "mistral.chat"),
    (Protocol::CohereChat, "cohere.chat"),
    (Protocol::OllamaChat, "ollama.chat"),
    (Protocol::WorkersAiRun, "workers-ai.run"),
    (Protocol::HuggingFaceInference, "huggingface.inference"),
    (Protocol::TgiGenerate, "tgi.generate"),
    (Protocol::Unknown, "unknown"),
];

impl Protocol {
    /// The public name, e.g. `openai.chat`.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find_map(|(p, n)| (*p == self).then_some(*n)).unwrap_or("unknown")
    }

    /// The protocol of a public name; `None` for a name that is not one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find_map(|(p, n)| (*n == name).then_some(*p))
    }

    /// Every public name, in the order of the table.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(_, n)| *n)
    }
}
