/** The troubles one can choose. Each is played on a fresh keel with the same seed, so it looks the same every time. */
import { anthropic, openai, sse } from "evenkeel/testing";
import { ANSWER, after, fine, paced, refusal } from "./steps.js";
import type { Trouble } from "./trouble.js";

/** Short limits where a default would be a minute of waiting. */
const IMPATIENT = { timeouts: { firstByteMs: 1500, minAttemptMs: 300 } };

/** Anthropic's stream, cut after so many of its events. */
const openingOf = (events: number) => {
  const stream = anthropic.messageStream(ANSWER);
  return { ...stream, chunks: stream.chunks.slice(0, events) };
};

export const TROUBLES: readonly Trouble[] = [
  {
    id: "none",
    group: "Answers",
    title: "No trouble",
    about: "What a call looks like when nothing goes wrong: one attempt, and its record.",
    upstream: ["200, the body in six parts"],
    api: "openai",
    stream: false,
    script: () => [fine()],
    spanMs: 1500,
  },
  {
    id: "503",
    group: "Answers",
    title: "503, then fine",
    about:
      "The provider is overloaded for a moment. The call backs off and tries once more; its caller sees one answer.",
    upstream: ["503, server is overloaded", "200"],
    api: "openai",
    stream: false,
    script: () => [refusal(openai.overloaded()), fine()],
    spanMs: 3000,
  },
  {
    id: "429",
    group: "Answers",
    title: "429 with Retry-After",
    about:
      "The provider says how long to wait. The wait is never shorter than that, and a little jitter is added, so that a fleet does not come back in one instant.",
    upstream: ["429, retry-after: 2", "200"],
    api: "openai",
    stream: false,
    script: () => [refusal(openai.rateLimited(2)), fine()],
    spanMs: 4000,
  },
  {
    id: "429-long",
    group: "Answers",
    title: "429, come back in 10 minutes",
    about:
      "A hint that is too long to be slept through. It is neither shortened nor waited for: the caller gets the answer now, and is told when to come back.",
    upstream: ["429, retry-after: 600"],
    api: "openai",
    stream: false,
    script: () => [refusal(openai.rateLimited(600))],
    spanMs: 1000,
  },
  {
    id: "billing",
    group: "Answers",
    title: "429, no money left",
    about: "Also a 429, but waiting does not help: the quota is used up. One request, and the caller knows.",
    upstream: ["429, insufficient_quota"],
    api: "openai",
    stream: false,
    script: () => [refusal(openai.quotaExhausted())],
    spanMs: 1000,
  },
  {
    id: "400",
    group: "Answers",
    title: "400, our own mistake",
    about: "The request itself is wrong. The same request again would be wrong again, so there is no second one.",
    upstream: ["400, invalid value"],
    api: "openai",
    stream: false,
    script: () => [refusal(openai.badRequest())],
    spanMs: 1000,
  },
  {
    id: "outage",
    group: "Answers",
    title: "Full outage",
    about:
      "Everyone gets 503. After three attempts the call gives the provider's own answer back, and tells an SDK above not to retry once more.",
    upstream: ["503, whoever asks and however often"],
    api: "openai",
    stream: false,
    script: () => () => refusal(openai.overloaded()),
    spanMs: 4500,
  },
  {
    id: "refused",
    group: "Connections",
    title: "Connection refused",
    about: "Nobody listens. Nothing was sent, so trying again can't pay twice.",
    upstream: ["connection refused", "200"],
    api: "openai",
    stream: false,
    script: () => [after(60, { fail: "refused" }), fine()],
    spanMs: 3000,
  },
  {
    id: "reset-body",
    group: "Connections",
    title: "Reset in the middle of a body",
    about:
      "The head was fine and half of the body has come; then the connection breaks. Nobody has seen that half, so the call may try again.",
    upstream: ["200, and a reset after half of the body", "200"],
    api: "openai",
    stream: false,
    script: () => [{ ...fine(), cutAt: 260, end: "reset" }, fine()],
    spanMs: 3500,
  },
  {
    id: "hang",
    group: "Connections",
    title: "Silence",
    about:
      "The request is out and no head comes. When the limit for the first byte passes, the attempt is given up and another one made.",
    upstream: ["nothing, ever", "200"],
    api: "openai",
    stream: false,
    script: () => [{ hang: true }, fine()],
    options: IMPATIENT,
    spanMs: 4000,
  },
  {
    id: "stall",
    group: "Connections",
    title: "Half a body, then silence",
    about: "A timeout that ends at the head is no timeout: the limit of an attempt holds for its body too.",
    upstream: ["200, half of the body, then nothing", "200"],
    api: "openai",
    stream: false,
    script: () => [{ ...fine(), cutAt: 260, end: "stall" }, fine()],
    options: { timeouts: { attemptMs: 1800, minAttemptMs: 300 } },
    spanMs: 4500,
  },
  {
    id: "deadline",
    group: "Connections",
    title: "No time left",
    about:
      "The caller needs an answer within 2 seconds. After the first silence too little is left for an attempt that makes sense, so none is begun.",
    upstream: ["nothing, ever"],
    api: "openai",
    stream: false,
    script: () => () => ({ hang: true }),
    options: { timeouts: { firstByteMs: 1500 } },
    deadlineMs: 2000,
    spanMs: 2500,
  },
  {
    id: "stream-fine",
    group: "Streams",
    title: "A good stream",
    about:
      "The answer is given on from its first content. Watch the caller's line: it starts to read long before the stream has ended.",
    upstream: ["200, a stream"],
    api: "anthropic",
    stream: true,
    script: () => [paced(anthropic.messageStream(ANSWER))],
    spanMs: 2500,
  },
  {
    id: "stream-error-early",
    group: "Streams",
    title: "Error before content",
    about:
      "HTTP says 200, then the stream says overloaded, before a word was written. The head was held back until there is content, so this is still retried.",
    upstream: ["200, a stream that begins with an error event", "200, a stream"],
    api: "anthropic",
    stream: true,
    script: () => [
      paced({ ...openingOf(2), chunks: [...openingOf(2).chunks, anthropic.errorEvent()] }),
      paced(anthropic.messageStream(ANSWER)),
    ],
    spanMs: 4500,
  },
  {
    id: "stream-pings",
    group: "Streams",
    title: "Only pings",
    about:
      "The connection is alive and the model is not: keep-alives are no content. The limit for the first content ends it.",
    upstream: ["200, a stream of pings", "200, a stream"],
    api: "anthropic",
    stream: true,
    script: () => [
      {
        ...paced(
          {
            ...openingOf(1),
            chunks: [...openingOf(1).chunks, ...Array<string>(40).fill(sse({ type: "ping" }, "ping"))],
          },
          200,
        ),
        end: "stall",
      },
      paced(anthropic.messageStream(ANSWER)),
    ],
    options: { timeouts: { firstTokenMs: 1600, minAttemptMs: 300 } },
    spanMs: 5000,
  },
  {
    id: "stream-cut",
    group: "Streams",
    title: "Cut after content",
    about:
      "Part of the answer has reached the caller; nothing may be retried any more. The stream ends in the protocol's own error, never as if it were whole.",
    upstream: ["200, a stream that breaks after nine words"],
    api: "anthropic",
    stream: true,
    script: () => [{ ...paced(openingOf(12)), end: "reset" }],
    spanMs: 1500,
  },
  {
    id: "stream-short",
    group: "Streams",
    title: "Ended without its end",
    about:
      "The stream closes cleanly, but its last events are missing. To a plain fetch that is a whole answer; here it is an interrupted one.",
    upstream: ["200, a stream that closes after nine words"],
    api: "anthropic",
    stream: true,
    script: () => [paced(openingOf(12))],
    spanMs: 1500,
  },
];

/** The one that is chosen at first. */
export const FIRST = "503";

/** The trouble of that id. */
export function troubleOf(id: string): Trouble | undefined {
  return TROUBLES.find((trouble) => trouble.id === id);
}
