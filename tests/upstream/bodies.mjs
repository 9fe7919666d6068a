/**
 * Answers as the providers write them, ready to be steps of a script: whole bodies, streams as arrays of parts (one
 * event a part), and their errors. Shapes and wordings are the providers' own, with ids and names replaced.
 *
 * Every builder returns a step, so a script reads `[openai.overloaded(), openai.chat("hello")]`; what a case needs
 * beside that is spread over it: `{ ...openai.chat("hello"), resetAtByte: 40 }`.
 */

const JSON_TYPE = { "content-type": "application/json" };
const SSE_TYPE = { "content-type": "text/event-stream; charset=utf-8" };
const NDJSON_TYPE = { "content-type": "application/x-ndjson" };

/**
 * @param {number} status
 * @param {unknown} json
 * @param {Record<string, string>} [headers]
 * @returns {import("./upstream.mjs").Step & { json: unknown }}
 */
export function answer(status, json, headers = {}) {
  return { status, headers: { ...JSON_TYPE, ...headers }, json };
}

/**
 * A stream as a step: one part an event.
 *
 * @param {string[]} body
 * @param {Record<string, string>} [headers]
 * @returns {import("./upstream.mjs").Step & { body: string[] }}
 */
export function stream(body, headers = {}) {
  return { status: 200, headers: { ...SSE_TYPE, "cache-control": "no-cache", ...headers }, body };
}

/** One server-sent event; `name` is left out where the protocol has none. */
export function event(/** @type {unknown} */ data, /** @type {string} */ name = "", eol = "\n") {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name ? `event: ${name}${eol}` : ""}data: ${text}${eol}${eol}`;
}

/** Text in pieces of about a token, losing nothing. */
export function tokens(/** @type {string} */ text) {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

/** The number of parts that come before the first one with `text` in it. */
export function partsBefore(/** @type {string[]} */ parts, /** @type {string} */ text) {
  const index = parts.findIndex((part) => part.includes(text));
  if (index < 0) throw new Error(`no part contains ${text}`);
  return index;
}

/** The bytes of the first `count` parts: where to cut a stream between two events. */
export function bytesOf(/** @type {string[]} */ parts, count = parts.length) {
  return parts.slice(0, count).reduce((sum, part) => sum + Buffer.byteLength(part), 0);
}

const usageOf = (/** @type {string} */ text) => ({
  prompt_tokens: 11,
  completion_tokens: tokens(text).length,
  total_tokens: 11 + tokens(text).length,
});

export const openai = {
  chat(/** @type {string} */ text, { model = "gpt-5", id = "chatcmpl-1", finish = "stop" } = {}) {
    return answer(
      200,
      {
        id,
        object: "chat.completion",
        created: 1795996800,
        model,
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: text, refusal: null },
            logprobs: null,
            finish_reason: finish,
          },
        ],
        usage: usageOf(text),
        service_tier: "default",
      },
      { "x-request-id": "req_0000000000000001", "openai-processing-ms": "124" },
    );
  },

  chatStream(/** @type {string} */ text, { model = "gpt-5", id = "chatcmpl-1", finish = "stop", usage = false } = {}) {
    const chunk = (/** @type {object} */ delta, /** @type {string | null} */ reason = null) =>
      event({
        id,
        object: "chat.completion.chunk",
        created: 1795996800,
        model,
        choices: [{ index: 0, delta, finish_reason: reason }],
      });
    const parts = [
      chunk({ role: "assistant", content: "", refusal: null }),
      ...tokens(text).map((content) => chunk({ content })),
      chunk({}, finish),
    ];
    if (usage)
      parts.push(
        event({ id, object: "chat.completion.chunk", created: 1795996800, model, choices: [], usage: usageOf(text) }),
      );
    parts.push(event("[DONE]"));
    return stream(parts, { "x-request-id": "req_0000000000000002" });
  },

  response(/** @type {string} */ text, { model = "gpt-5", id = "resp_1" } = {}) {
    return answer(200, responseObject(text, model, id, "completed"), { "x-request-id": "req_0000000000000003" });
  },

  responseStream(/** @type {string} */ text, { model = "gpt-5", id = "resp_1" } = {}) {
    let sequence = 0;
    const named = (/** @type {string} */ type, /** @type {object} */ rest) =>
      event({ type, sequence_number: sequence++, ...rest }, type);
    const item = { item_id: "msg_1", output_index: 0, content_index: 0 };
    return stream(
      [
        named("response.created", { response: responseObject("", model, id, "in_progress") }),
        named("response.in_progress", { response: responseObject("", model, id, "in_progress") }),
        named("response.output_item.added", {
          output_index: 0,
          item: { id: "msg_1", type: "message", status: "in_progress", role: "assistant", content: [] },
        }),
        named("response.content_part.added", { ...item, part: { type: "output_text", text: "", annotations: [] } }),
        ...tokens(text).map((delta) => named("response.output_text.delta", { ...item, delta })),
        named("response.output_text.done", { ...item, text }),
        named("response.content_part.done", { ...item, part: { type: "output_text", text, annotations: [] } }),
        named("response.completed", { response: responseObject(text, model, id, "completed") }),
      ],
      { "x-request-id": "req_0000000000000004" },
    );
  },

  error(/** @type {number} */ status, /** @type {object} */ error, /** @type {Record<string, string>} */ headers = {}) {
    return answer(
      status,
      { error: { message: "", type: "invalid_request_error", param: null, code: null, ...error } },
      { "x-request-id": "req_00000000000000ee", ...headers },
    );
  },
  overloaded: (headers = {}) =>
    openai.error(
      503,
      {
        message: "Our servers are currently overloaded. Please try again later.",
        type: "service_unavailable_error",
        code: "server_is_overloaded",
      },
      headers,
    ),
  serverError: (headers = {}) =>
    openai.error(
      500,
      { message: "The server had an error while processing your request. Sorry about that!", type: "server_error" },
      headers,
    ),
  rateLimited: (/** @type {Record<string, string>} */ headers = { "retry-after": "1" }) =>
    openai.error(
      429,
      {
        message:
          "Rate limit reached for gpt-5 in organization org-EXAMPLE on tokens per min (TPM): Limit 30000, Used 28928, Requested 2159.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
      headers,
    ),
  billing: () =>
    openai.error(429, {
      message: "You exceeded your current quota, please check your plan and billing details.",
      type: "insufficient_quota",
      code: "insufficient_quota",
    }),
  badKey: () =>
    openai.error(401, {
      message:
        "Incorrect API key provided: sk-proj-****abcd. You can find your API key at https://platform.openai.com/account/api-keys.",
      code: "invalid_api_key",
    }),
  badRequest: () =>
    openai.error(400, {
      message: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 200 instead.",
      param: "temperature",
      code: "decimal_above_max_value",
    }),
  contextTooLong: () =>
    openai.error(400, {
      message: "This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.",
      param: "messages",
      code: "context_length_exceeded",
    }),
  modelNotFound: () =>
    openai.error(404, {
      message: "The model `gpt-9` does not exist or you do not have access to it.",
      code: "model_not_found",
    }),
  /** An error inside an HTTP 200: nothing but an error event. */
  overloadedInStream: () =>
    stream([
      event({
        error: {
          message: "The server is currently overloaded. Please try again later.",
          type: "server_error",
          param: null,
          code: "server_is_overloaded",
        },
      }),
    ]),
};

/**
 * @param {string} text
 * @param {string} model
 * @param {string} id
 * @param {string} status
 */
function responseObject(text, model, id, status) {
  const done = status === "completed";
  const output = done
    ? [
        {
          id: "msg_1",
          type: "message",
          status,
          role: "assistant",
          content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
        },
      ]
    : [];
  const count = tokens(text).length;
  const usage = done
    ? {
        input_tokens: 11,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: count,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 11 + count,
      }
    : null;
  return {
    id,
    object: "response",
    created_at: 1795996800,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    model,
    output,
    usage,
    parallel_tool_calls: true,
    tools: [],
    metadata: {},
  };
}

export const anthropic = {
  message(/** @type {string} */ text, { model = "claude-sonnet-5-5", id = "msg_1", stop = "end_turn" } = {}) {
    return answer(
      200,
      {
        id,
        type: "message",
        role: "assistant",
        model,
        content: [{ type: "text", text }],
        stop_reason: stop,
        stop_sequence: null,
        usage: { input_tokens: 11, output_tokens: tokens(text).length },
      },
      { "request-id": "req_011EXAMPLE000000000001", "anthropic-ratelimit-requests-remaining": "49" },
    );
  },

  messageStream(/** @type {string} */ text, { model = "claude-sonnet-5-5", id = "msg_1", stop = "end_turn" } = {}) {
    const named = (/** @type {string} */ type, /** @type {object} */ rest = {}) => event({ type, ...rest }, type);
    return stream(
      [
        named("message_start", {
          message: {
            id,
            type: "message",
            role: "assistant",
            model,
            content: [],
            stop_reason: null,
            stop_sequence: null,
            usage: { input_tokens: 11, output_tokens: 1 },
          },
        }),
        named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
        named("ping"),
        ...tokens(text).map((piece) =>
          named("content_block_delta", { index: 0, delta: { type: "text_delta", text: piece } }),
        ),
        named("content_block_stop", { index: 0 }),
        named("message_delta", {
          delta: { stop_reason: stop, stop_sequence: null },
          usage: { output_tokens: tokens(text).length },
        }),
        named("message_stop"),
      ],
      { "request-id": "req_011EXAMPLE000000000002" },
    );
  },

  error(
    /** @type {number} */ status,
    /** @type {string} */ type,
    /** @type {string} */ message,
    /** @type {Record<string, string>} */ headers = {},
    rest = {},
  ) {
    const requestId = "req_011EXAMPLE0000000000ee";
    return answer(
      status,
      { type: "error", error: { type, message, ...rest }, request_id: requestId },
      { "request-id": requestId, ...headers },
    );
  },
  overloaded: (headers = {}) => anthropic.error(529, "overloaded_error", "Overloaded", headers),
  serverError: () => anthropic.error(500, "api_error", "Internal server error"),
  rateLimited: (/** @type {Record<string, string>} */ headers = { "retry-after": "1", "x-should-retry": "true" }) =>
    anthropic.error(
      429,
      "rate_limit_error",
      "This request would exceed the rate limit for your organization of 20,000 input tokens per minute.",
      headers,
    ),
  spendLimit: () =>
    anthropic.error(
      429,
      "rate_limit_error",
      "Your organization has reached its monthly spend limit.",
      {},
      { details: { error_code: "enforced_spend_limit_reached" } },
    ),
  billing: () =>
    anthropic.error(
      400,
      "invalid_request_error",
      "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
    ),
  badKey: () => anthropic.error(401, "authentication_error", "invalid x-api-key"),
  badRequest: () => anthropic.error(400, "invalid_request_error", "messages: at least one message is required"),
  promptTooLong: () =>
    anthropic.error(400, "invalid_request_error", "prompt is too long: 201844 tokens > 200000 maximum"),
  overloadedInStream: () =>
    stream([
      event({ type: "error", error: { details: null, type: "overloaded_error", message: "Overloaded" } }, "error"),
    ]),
};

export const gemini = {
  content(/** @type {string} */ text, { model = "gemini-2.5-flash" } = {}) {
    return answer(200, geminiChunk(text, model, true), { "content-type": "application/json; charset=UTF-8" });
  },
  /** Its lines end in CRLF, and the last event is just the last event. */
  contentStream(/** @type {string} */ text, { model = "gemini-2.5-flash" } = {}) {
    const pieces = tokens(text);
    return stream(
      pieces.map((piece, i) => event(geminiChunk(piece, model, i === pieces.length - 1), "", "\r\n")),
      { "content-type": "text/event-stream" },
    );
  },
  error(
    /** @type {number} */ code,
    /** @type {string} */ status,
    /** @type {string} */ message,
    /** @type {object[]} */ details = [],
  ) {
    return answer(
      code,
      { error: { code, message, status, ...(details.length ? { details } : {}) } },
      { "content-type": "application/json; charset=UTF-8" },
    );
  },
  overloaded: () => gemini.error(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
  badKey: () =>
    gemini.error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", [
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID", domain: "googleapis.com" },
    ]),
  rateLimited: (retryDelay = "1s") =>
    gemini.error(
      429,
      "RESOURCE_EXHAUSTED",
      "You exceeded your current quota, please check your plan.",
      geminiQuota("PerMinute", retryDelay),
    ),
  dailyQuota: (retryDelay = "47s") =>
    gemini.error(
      429,
      "RESOURCE_EXHAUSTED",
      "You exceeded your current quota, please check your plan and billing details.",
      geminiQuota("PerDay", retryDelay),
    ),
};

const geminiQuota = (/** @type {string} */ per, /** @type {string} */ retryDelay) => [
  {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    violations: [{ quotaId: `GenerateRequests${per}PerProjectPerModel-FreeTier` }],
  },
  { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay },
];

function geminiChunk(/** @type {string} */ text, /** @type {string} */ model, /** @type {boolean} */ last) {
  const candidate = {
    content: { parts: [{ text }], role: "model" },
    index: 0,
    ...(last ? { finishReason: "STOP" } : {}),
  };
  const count = tokens(text).length;
  return {
    candidates: [candidate],
    usageMetadata: { promptTokenCount: 11, candidatesTokenCount: count, totalTokenCount: 11 + count },
    modelVersion: model,
    responseId: "resp-1",
  };
}

export const ollama = {
  chat(/** @type {string} */ text, { model = "llama3" } = {}) {
    return answer(200, ollamaLine(model, text, true));
  },
  chatStream(/** @type {string} */ text, { model = "llama3" } = {}) {
    return stream(
      [...tokens(text).map((piece) => ollamaLine(model, piece, false)), ollamaLine(model, "", true)].map(
        (line) => `${JSON.stringify(line)}\n`,
      ),
      NDJSON_TYPE,
    );
  },
  busy: () => answer(503, { error: "server busy, please try again.  maximum pending requests exceeded" }),
  modelNotFound: () => answer(404, { error: 'model "llama9" not found, try pulling it first' }),
  /** After output has begun an error is one more line. */
  errorLine: (message = "an error was encountered while running the model: unexpected EOF") =>
    `${JSON.stringify({ error: message })}\n`,
};

function ollamaLine(/** @type {string} */ model, /** @type {string} */ content, /** @type {boolean} */ done) {
  const line = { model, created_at: "2026-11-30T00:00:00Z", message: { role: "assistant", content }, done };
  return done
    ? { ...line, done_reason: "stop", total_duration: 4883583458, prompt_eval_count: 11, eval_count: 7 }
    : line;
}

export const mistral = {
  chat: (/** @type {string} */ text) => openai.chat(text, { model: "mistral-small-latest", id: "cmpl-1" }),
  chatStream: (/** @type {string} */ text) =>
    openai.chatStream(text, { model: "mistral-small-latest", id: "cmpl-1", usage: true }),
  rateLimited: () =>
    answer(429, {
      object: "error",
      message: "Rate limit exceeded",
      type: "rate_limited",
      param: null,
      code: "1300",
      raw_status_code: 429,
    }),
  gatewayRateLimited: () => answer(429, { message: "Requests rate limit exceeded" }),
  capacity: () =>
    answer(429, {
      object: "error",
      message: "Service tier capacity exceeded for this model.",
      type: "invalid_request_error",
      param: null,
      code: null,
    }),
  badKey: () => answer(401, { detail: "Unauthorized" }),
};

export const groq = {
  chat: (/** @type {string} */ text) => openai.chat(text, { model: "llama-3.3-70b-versatile" }),
  chatStream: (/** @type {string} */ text) => openai.chatStream(text, { model: "llama-3.3-70b-versatile" }),
  rateLimited: () =>
    answer(
      429,
      {
        error: {
          message:
            "Rate limit reached for model `llama-3.3-70b-versatile` in organization `org_example` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Used 4437, Requested 9854. Please try again in 7.66s.",
          type: "tokens",
          code: "rate_limit_exceeded",
        },
      },
      { "retry-after": "8", "x-ratelimit-remaining-tokens": "7563", "x-ratelimit-reset-tokens": "7.66s" },
    ),
  tooLarge: () =>
    answer(413, {
      error: {
        message: "Request too large for model `llama-3.1-8b-instant`: Limit 6000, Requested 9103.",
        type: "tokens",
        code: "rate_limit_exceeded",
      },
    }),
  flexCapacity: () =>
    answer(498, {
      error: { message: "Flex tier capacity exceeded", type: "capacity_exceeded", code: "capacity_exceeded" },
    }),
};

export const cohere = {
  chat(/** @type {string} */ text) {
    return answer(200, {
      id: "c1",
      finish_reason: "COMPLETE",
      message: { role: "assistant", content: [{ type: "text", text }] },
      usage: cohereUsage(text),
    });
  },
  chatStream(/** @type {string} */ text) {
    const named = (/** @type {string} */ type, /** @type {object} */ rest) => event({ type, ...rest }, type);
    return stream([
      named("message-start", { id: "c1", delta: { message: { role: "assistant", content: [] } } }),
      named("content-start", { index: 0, delta: { message: { content: { type: "text", text: "" } } } }),
      ...tokens(text).map((piece) =>
        named("content-delta", { index: 0, delta: { message: { content: { text: piece } } } }),
      ),
      named("content-end", { index: 0 }),
      named("message-end", { delta: { finish_reason: "COMPLETE", usage: cohereUsage(text) } }),
    ]);
  },
  rateLimited: () =>
    answer(429, { message: "You are past the per minute request limit, please wait and try again later." }),
  denied: () =>
    answer(498, {
      id: "00000000-0000-4000-8000-000000000001",
      message: "blocked input: please update the prompt and try again",
    }),
};

const cohereUsage = (/** @type {string} */ text) => ({
  billed_units: { input_tokens: 11, output_tokens: tokens(text).length },
  tokens: { input_tokens: 11, output_tokens: tokens(text).length },
});
