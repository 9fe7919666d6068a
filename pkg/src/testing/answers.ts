/** Answers as the providers write them, ready to be steps of a script. Spread one to change it: `{ ...openai.chat("hi"), cutAt: 40 }`. */
import type { Step } from "./upstream.js";

/** A streamed answer, whose parts can be cut, reordered or slowed down. */
export interface StreamStep extends Step {
  /** Its events, one a part. */
  chunks: string[];
}

const CREATED = 1_767_225_600;
const SSE = { "content-type": "text/event-stream; charset=utf-8" };

/**
 * One server-sent event: `data: …` and an empty line, under `event: name` if a name is given.
 *
 * @param data - Written as JSON unless it is a string.
 */
export function sse(data: unknown, name?: string): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

/** Text in pieces of about a token, losing nothing. */
function tokens(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

function openaiError(status: number, error: object, headers: Readonly<Record<string, string>> = {}): Step {
  const json = { error: { message: "", type: "invalid_request_error", param: null, code: null, ...error } };
  return { status, headers: { "x-request-id": "req_test", ...headers }, json };
}

/** OpenAI's chat completions, and what speaks the same. */
export const openai = {
  /** A whole answer. */
  chat(text: string, model = "gpt-5"): Step {
    const count = tokens(text).length;
    return {
      headers: { "x-request-id": "req_test" },
      json: {
        id: "chatcmpl-test",
        object: "chat.completion",
        created: CREATED,
        model,
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: text, refusal: null },
            logprobs: null,
            finish_reason: "stop",
          },
        ],
        usage: { prompt_tokens: 11, completion_tokens: count, total_tokens: 11 + count },
      },
    };
  },
  /** A streamed answer, one chunk a word. */
  chatStream(text: string, model = "gpt-5"): StreamStep {
    const chunk = (delta: object, reason: string | null = null): string =>
      sse({
        id: "chatcmpl-test",
        object: "chat.completion.chunk",
        created: CREATED,
        model,
        choices: [{ index: 0, delta, finish_reason: reason }],
      });
    return {
      headers: { ...SSE, "x-request-id": "req_test" },
      chunks: [
        chunk({ role: "assistant", content: "" }),
        ...tokens(text).map((content) => chunk({ content })),
        chunk({}, "stop"),
        sse("[DONE]"),
      ],
    };
  },
  /** An error event inside a stream. */
  errorEvent: (message = "The server had an error while processing your request."): string =>
    sse({ error: { message, type: "server_error", param: null, code: "server_error" } }),
  /** An error answer. */
  error: openaiError,
  /** 429 with a `retry-after`. */
  rateLimited: (retryAfterSeconds = 1): Step =>
    openaiError(
      429,
      { message: "Rate limit reached for gpt-5.", type: "requests", code: "rate_limit_exceeded" },
      { "retry-after": String(retryAfterSeconds) },
    ),
  /** 429 that waiting does not help. */
  quotaExhausted: (): Step =>
    openaiError(429, {
      message: "You exceeded your current quota, please check your plan and billing details.",
      type: "insufficient_quota",
      code: "insufficient_quota",
    }),
  /** 503. */
  overloaded: (): Step =>
    openaiError(503, {
      message: "The engine is currently overloaded, please try again later.",
      type: "server_error",
      code: "server_is_overloaded",
    }),
  /** 400, the caller's own fault. */
  badRequest: (message = "Invalid value: 'nobody'."): Step =>
    openaiError(400, { message, param: "messages", code: "invalid_value" }),
};

function anthropicError(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Step {
  return {
    status,
    headers: { "request-id": "req_test", ...headers },
    json: { type: "error", error: { type, message }, request_id: "req_test" },
  };
}

/** Anthropic's messages. */
export const anthropic = {
  /** A whole answer. */
  message(text: string, model = "claude-sonnet-4-5"): Step {
    return {
      headers: { "request-id": "req_test" },
      json: {
        id: "msg_test",
        type: "message",
        role: "assistant",
        model,
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 11, output_tokens: tokens(text).length },
      },
    };
  },
  /** A streamed answer, one chunk an event. */
  messageStream(text: string, model = "claude-sonnet-4-5"): StreamStep {
    const event = (type: string, rest: object = {}): string => sse({ type, ...rest }, type);
    const message = {
      id: "msg_test",
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
    };
    return {
      headers: { ...SSE, "request-id": "req_test" },
      chunks: [
        event("message_start", { message: { ...message, usage: { input_tokens: 11, output_tokens: 1 } } }),
        event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
        event("ping"),
        ...tokens(text).map((piece) =>
          event("content_block_delta", { index: 0, delta: { type: "text_delta", text: piece } }),
        ),
        event("content_block_stop", { index: 0 }),
        event("message_delta", {
          delta: { stop_reason: "end_turn", stop_sequence: null },
          usage: { output_tokens: tokens(text).length },
        }),
        event("message_stop"),
      ],
    };
  },
  /** An error event inside a stream. */
  errorEvent: (type = "overloaded_error", message = "Overloaded"): string =>
    sse({ type: "error", error: { type, message } }, "error"),
  /** An error answer. */
  error: anthropicError,
  /** 429 with a `retry-after`. */
  rateLimited: (retryAfterSeconds = 1): Step =>
    anthropicError(429, "rate_limit_error", "This request would exceed your organization's rate limit.", {
      "retry-after": String(retryAfterSeconds),
    }),
  /** 529. */
  overloaded: (): Step => anthropicError(529, "overloaded_error", "Overloaded"),
};
