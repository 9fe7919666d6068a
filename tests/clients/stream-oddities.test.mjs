/** What streams and bodies do that no specification says, through `keel.fetch`: bytes pass unchanged, and no verdict is wrong. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bytesOf, event, openai, partsBefore, stream } from "../upstream/bodies.mjs";
import { drain, rig } from "./rig.mjs";

const TEXT = "Keep the keel even.";
const parts = openai.chatStream(TEXT).body;
const done = /** @type {string} */ (parts.at(-1));
const content = (/** @type {string} */ text) => event({ choices: [{ index: 0, delta: { content: text } }] });
const SAID = parts.slice(0, partsBefore(parts, "keel") + 1);
const UNSAID = parts.slice(partsBefore(parts, "keel") + 1);

/** Sends a request for a stream and reads what comes; `error` is what ended it, if anything did. */
async function read(/** @type {Awaited<ReturnType<typeof rig>>} */ { chat, attempts, calls, upstream }) {
  const response = await chat({
    body: JSON.stringify({ model: "gpt-5", stream: true, messages: [{ role: "user", content: "hello" }] }),
  });
  const { text, error } = await drain(response);
  const [attempt] = (await attempts()).slice(-1);
  return {
    text,
    error,
    attempt,
    call: (await calls())[0],
    requests: upstream.seen.length,
  };
}

describe("a stream that ends oddly is a success if the answer is whole", { concurrency: true }, () => {
  /** @type {[name: string, body: (string | number)[]][]} */
  const whole = [
    ["data after [DONE]", [...parts, content(" And more.")]],
    ["a second [DONE]", [...parts, done]],
    ["a finish reason, and no [DONE]", parts.slice(0, -1)],
    ["no blank line behind [DONE]", [...parts.slice(0, -1), "data: [DONE]"]],
    ["a malformed event in the middle", [...SAID, 'data: {"choices":[{"index":0,\n\n', ...UNSAID]],
    ["comments and blank lines everywhere", [": hello\n\n\n", ...SAID, ": ping\n\n\n\n", ...UNSAID, ": bye\n\n"]],
  ];
  for (const [name, body] of whole) {
    it(name, async (t) => {
      const { text, error, attempt, requests } = await read(await rig(t, [stream(/** @type {any} */ (body))]));
      assert.equal(error, undefined);
      assert.equal(text, body.join(""), "unchanged");
      assert.equal(attempt.status, "succeeded");
      assert.equal(attempt.finish_reason, "stop");
      assert.equal(requests, 1);
    });
  }

  it("a malformed event is noted in the record", async (t) => {
    const body = /** @type {any} */ ([...SAID, 'data: {"choices":[{"index":0,\n\n', ...UNSAID]);
    const { attempt } = await read(await rig(t, [stream(body)]));
    assert.equal(attempt.malformed_events, 1);
  });

  it("a finish reason without [DONE] ends with its connection, not with a clock", async (t) => {
    const startedAt = performance.now();
    const { attempt } = await read(await rig(t, [stream(parts.slice(0, -1))]));
    assert.ok(performance.now() - startedAt < 2000);
    assert.equal(attempt.terminal_marker, false);
    assert.equal(attempt.status, "succeeded");
  });
});

describe("a stream that breaks oddly is never a success", { concurrency: true }, () => {
  it("an error event whose JSON is broken ends it with an error", async (t) => {
    const { text, error, call } = await read(
      await rig(t, [
        stream(/** @type {any} */ ([...SAID, 50, 'event: error\ndata: {"error":{"message":"Overl\n\n', ...UNSAID])),
      ]),
    );
    assert.equal(error.name, "KeelError");
    assert.equal(error.class, "stream_interrupted");
    assert.ok(text.startsWith(SAID.join("")), "what had come before is there");
    assert.ok(!text.includes(" even"), "and nothing from behind the error");
    assert.equal(call.error_class, "stream_interrupted");
  });

  it("[DONE] behind an error is no good end", async (t) => {
    const failed = event({ error: { message: "KV cache is full", type: "server_error", code: 500 } });
    const { error, text } = await read(await rig(t, [stream(/** @type {any} */ ([...SAID, 50, failed, done]))]));
    assert.equal(error.class, "stream_interrupted");
    assert.equal(text, SAID.join("") + failed, "the upstream's own error is passed on, once");
  });

  it("an empty stream is asked for again", async (t) => {
    const { text, error, requests, attempt } = await read(await rig(t, [stream([]), openai.chatStream(TEXT)]));
    assert.equal(error, undefined);
    assert.equal(text, parts.join(""));
    assert.equal(requests, 2);
    assert.equal(attempt.attempt_no, 2);
  });

  it("a stream with [DONE] and nothing else is asked for again", async (t) => {
    const { text, requests } = await read(await rig(t, [stream([done]), openai.chatStream(TEXT)]));
    assert.equal(text, parts.join(""));
    assert.equal(requests, 2);
  });

  it("a JSON error under the content type of a stream is read as what it is", async (t) => {
    const { text, requests, attempt } = await read(
      await rig(t, [
        {
          status: 200,
          headers: { "content-type": "text/event-stream" },
          body: JSON.stringify(openai.overloaded().json),
        },
        openai.chatStream(TEXT),
      ]),
    );
    assert.equal(text, parts.join(""));
    assert.equal(requests, 2);
    assert.equal(attempt.status, "succeeded");
  });
});

describe("chunks may be cut anywhere", { concurrency: true }, () => {
  it("ten thousand tiny chunks come through unchanged", async (t) => {
    const body = [parts[0], ...Array.from({ length: 900 }, (_, n) => content(` ${n}`)), ...parts.slice(-2)].join("");
    const pieces = body.match(/[\s\S]{1,5}/g) ?? [];
    assert.ok(pieces.length > 10_000, `${pieces.length} chunks`);
    const { text, error, attempt } = await read(await rig(t, [stream(pieces)]));
    assert.equal(error, undefined);
    assert.equal(text, body);
    assert.equal(attempt.status, "succeeded");
    assert.equal(attempt.bytes, body.length);
  });

  it("a chunk may end inside of a UTF-8 sequence", async (t) => {
    const body = Buffer.from([parts[0], content("Kiel hält 🛶 gerade — 龍骨"), ...parts.slice(-2)].join(""));
    const bytes = [...body].map((byte) => Uint8Array.of(byte));
    const { text, error, attempt } = await read(await rig(t, [{ ...stream([]), body: bytes }]));
    assert.equal(error, undefined);
    assert.equal(text, body.toString());
    assert.equal(attempt.status, "succeeded");
  });

  it("a cut inside of an event leaves a whole event and then the error", async (t) => {
    const cut = bytesOf(SAID) + 25;
    const { text, error } = await read(await rig(t, [{ ...openai.chatStream(TEXT), resetAtByte: cut }]));
    assert.equal(error.class, "stream_interrupted");
    const events = text.trimEnd().split("\n\n");
    assert.match(events.at(-1) ?? "", /evenkeel: the answer was cut short/);
    assert.match(events.at(-1) ?? "", /^data: \{/, "the error event isn't glued to half an event");
  });
});

describe("the clocks of a body that isn't streamed", { concurrency: true }, () => {
  const json = JSON.stringify(openai.chat(TEXT).json);
  const whole = (/** @type {(string | number)[]} */ body) => ({
    status: 200,
    headers: { "content-type": "application/json" },
    body,
  });
  const blanks = (/** @type {number} */ count) => Array.from({ length: count }, () => [40, "\n"]).flat();

  it("DeepSeek's blank lines before the JSON are waited through, within the first-token limit", async (t) => {
    const { chat, attempts } = await rig(t, [whole([...blanks(8), json])], {
      timeouts: { chunkGapMs: 250, firstTokenMs: 5000 },
    });
    const answer = await (await chat()).json();
    assert.equal(answer.choices[0].message.content, TEXT);
    assert.equal((await attempts())[0].status, "succeeded");
  });

  it("blank lines and nothing else run into the first-token limit, and the request is sent again", async (t) => {
    const { chat, attempts } = await rig(t, [whole(blanks(200)), openai.chat(TEXT)], {
      timeouts: { chunkGapMs: 2000, firstTokenMs: 200 },
    });
    const answer = await (await chat()).json();
    assert.equal(answer.choices[0].message.content, TEXT);
    const [first, second] = await attempts();
    assert.deepEqual([first.error_class, first.reason], ["timeout", "first_token_timeout"]);
    assert.ok(first.latency_ms >= 190 && first.latency_ms < 1500, `${first.latency_ms} ms`);
    assert.equal(second.status, "succeeded");
  });

  it("silence within a body runs into the chunk gap, and nobody sees half of it", async (t) => {
    const half = json.slice(0, 60);
    const { chat, attempts, upstream } = await rig(t, [whole([half, 60_000]), openai.chat(TEXT)], {
      timeouts: { chunkGapMs: 200 },
    });
    const answer = await (await chat()).json();
    assert.equal(answer.choices[0].message.content, TEXT);
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.reason),
      ["chunk_gap_timeout", null],
    );
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
  });

  it("blank lines within a body run into the content gap", async (t) => {
    const { chat, attempts } = await rig(t, [whole([json.slice(0, 60), ...blanks(200)]), openai.chat(TEXT)], {
      timeouts: { chunkGapMs: 2000, contentGapMs: 200 },
    });
    assert.equal((await (await chat()).json()).choices[0].message.content, TEXT);
    const [first] = await attempts();
    assert.equal(first.reason, "content_gap_timeout");
    assert.ok(first.latency_ms >= 190 && first.latency_ms < 1500, `${first.latency_ms} ms`);
  });

  it("a slow body that keeps coming is read to its end", async (t) => {
    const pieces = (json.match(/[\s\S]{1,40}/g) ?? []).flatMap((piece) => [40, piece]);
    const { chat, attempts } = await rig(t, [whole(pieces)], {
      timeouts: { chunkGapMs: 200, contentGapMs: 200, firstTokenMs: 200 },
    });
    assert.equal((await (await chat()).json()).choices[0].message.content, TEXT);
    assert.ok((await attempts())[0].latency_ms > 250, "it took longer than each of the clocks");
  });
});
