/**
 * How each trouble has to end on the page, as a person would read it: the attempts in order, what the caller has, and
 * words that the records must show.
 *
 * @typedef {object} Ending
 * @property {string[]} attempts The words beside each attempt's number.
 * @property {string} caller The words beside "The caller".
 * @property {string[]} kinds The boxes drawn for each attempt, in order.
 * @property {string[]} [shows] Words of the records.
 */

const GOOD = "HTTP 200, succeeded";
const HAS = "has the answer";
const BODY = "head body";
const STREAM = "head stream";

/** @type {Record<string, Ending>} */
export const ENDINGS = {
  none: { attempts: [GOOD], caller: HAS, kinds: [BODY] },
  503: {
    attempts: ["HTTP 503, overloaded", GOOD],
    caller: HAS,
    kinds: ["head backoff", BODY],
    shows: ["openai.server_is_overloaded", "try again in 733 ms"],
  },
  429: {
    attempts: ["HTTP 429, rate limited", GOOD],
    caller: HAS,
    kinds: ["head backoff", BODY],
    shows: ["2 s were asked for", "bucket cooling"],
  },
  "429-long": {
    attempts: ["HTTP 429, rate limited"],
    caller: "has an error",
    kinds: ["head"],
    shows: ["wait_too_long", "10 min", "x-should-retry: false"],
  },
  billing: {
    attempts: ["HTTP 429, quota exhausted"],
    caller: "has an error",
    kinds: ["head"],
    shows: ["openai.insufficient_quota"],
  },
  400: { attempts: ["HTTP 400, bad request"], caller: "has an error", kinds: ["head"] },
  outage: {
    attempts: ["HTTP 503, overloaded", "HTTP 503, overloaded", "HTTP 503, overloaded"],
    caller: "has an error",
    kinds: ["head backoff", "head backoff", "head"],
    shows: ["attempts_exhausted", "x-should-retry: false"],
  },
  refused: {
    attempts: ["no answer, connection error", GOOD],
    caller: HAS,
    kinds: ["head backoff", BODY],
    shows: ["not sent"],
  },
  "reset-body": {
    attempts: ["HTTP 200, connection error", GOOD],
    caller: HAS,
    kinds: ["head body backoff", BODY],
    shows: ["maybe sent"],
  },
  hang: {
    attempts: ["no answer, timeout", GOOD],
    caller: HAS,
    kinds: ["head backoff", BODY],
    shows: ["first_byte_timeout"],
  },
  stall: {
    attempts: ["HTTP 200, timeout", GOOD],
    caller: HAS,
    kinds: ["head body backoff", BODY],
    shows: ["attempt_timeout"],
  },
  deadline: {
    attempts: ["no answer, timeout"],
    caller: "has an error",
    kinds: ["head"],
    shows: ["not_enough_time_budget", "KeelError"],
  },
  "stream-fine": { attempts: [GOOD], caller: HAS, kinds: [STREAM], shows: ["first_token_ms"] },
  "stream-error-early": {
    attempts: ["HTTP 200, overloaded", GOOD],
    caller: HAS,
    kinds: ["head stream backoff", STREAM],
    shows: ["anthropic.overloaded"],
  },
  "stream-pings": {
    attempts: ["HTTP 200, timeout", GOOD],
    caller: HAS,
    kinds: ["head stream backoff", STREAM],
    shows: ["first_token_timeout"],
  },
  "stream-cut": {
    attempts: ["HTTP 200, stream interrupted"],
    caller: "has part of an answer, and an error",
    kinds: [STREAM],
    shows: ["A keel holds a ship on its course: most", "reset"],
  },
  "stream-short": {
    attempts: ["HTTP 200, stream interrupted"],
    caller: "has part of an answer, and an error",
    kinds: [STREAM],
    shows: ["A keel holds a ship on its course: most", "end_without_terminal"],
  },
};

/** What the page shows of a play, read from its elements. Runs in the page. */
export function readPage() {
  const text = (element) => element?.textContent?.trim() ?? "";
  const rows = [...document.querySelectorAll(".attempt")];
  return {
    mode: document.documentElement.dataset.mode,
    now: text(document.querySelector("#now")),
    caller: text(document.querySelector(".caller .verdict")),
    answer: text(document.querySelector(".caller .answer")),
    attempts: rows.map((row) => text(row.querySelector(".verdict"))),
    kinds: rows.map((row) => [...row.querySelectorAll(".track .segment")].map((box) => box.dataset.kind).join(" ")),
    records: rows.map((row) => JSON.parse(row.querySelector("details code")?.textContent ?? "null")),
    call: JSON.parse(document.querySelector(".caller details code")?.textContent ?? "null"),
    all: text(document.querySelector("#stage")),
  };
}
