/** Streams: half an answer never looks like a whole one, a silence has an end, and nothing is made up or asked twice. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel, KeelError } from "evenkeel";
import { openai as answers, fakeClock, scriptedUpstream, sse } from "evenkeel/testing";
import { drain, rig } from "../clients/rig.mjs";
import { anthropic, bytesOf, event, openai, partsBefore } from "../upstream/bodies.mjs";

const TEXT = "Keep the keel even, whatever the wind does.";
const whole = openai.chatStream(TEXT);
const SAID = whole.body.slice(0, partsBefore(whole.body, "keel") + 1);
const half = () => ({ ...openai.chatStream(TEXT), body: SAID });
const streamed = (rest = {}) => ({
  body: JSON.stringify({ model: "gpt-5", stream: true, messages: [{ role: "user", content: "hello" }] }),
  ...rest,
});

describe("content and an error event in one chunk of the network", () => {
  const said = answers.chatStream("The keel").chunks.slice(0, -2).join("");
  const broken = { ...answers.chatStream("x"), chunks: [said + answers.errorEvent("The engine is on fire")] };
  const ask = async (/** @type {object[]} */ script) => {
    const clock = fakeClock();
    /** @type {any[]} */
    const records = [];
    const upstream = scriptedUpstream(script, { clock });
    const keel = createKeel({ clock, seed: 1, fetch: upstream.fetch, ledger: (record) => void records.push(record) });
    const url = "https://api.openai.com/v1/chat/completions";
    const response = await clock.run(() => keel.fetch(url, { method: "POST", ...streamed() }));
    const { text, error } = await clock.run(() => drain(response));
    return { response, text, error, records, requests: upstream.seen.length };
  };

  it("have reached nobody: the attempt has failed with the event's own class, and is tried again", async () => {
    const { text, error, records, requests } = await ask([broken, answers.chatStream("The keel is even.")]);
    assert.equal(error, undefined);
    assert.ok(!text.includes("on fire"));
    assert.match(text, /\[DONE\]\n\n$/);
    assert.equal(requests, 2);
    assert.deepEqual(
      [records[0].status, records[0].error_class, records[0].decision],
      ["failed", "server_error", "retry"],
    );
  });

  it("are given on where no attempt is better: the text, the provider's event, and the error of its class", async () => {
    const { response, text, error, requests, records } = await ask([broken, broken, broken]);
    assert.equal(requests, 3);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-evenkeel-class"), "server_error");
    assert.equal(text, broken.chunks[0]);
    assert.ok(error instanceof KeelError);
    assert.equal(error.class, "server_error");
    assert.equal(records.at(-1).error_class, "server_error");
  });

  it("in two chunks: what was said is given on, and the stream is interrupted", async () => {
    const split = { ...broken, chunks: [said, answers.errorEvent("The engine is on fire")] };
    const { text, error, requests } = await ask([split]);
    assert.equal(requests, 1);
    assert.equal(text, split.chunks.join(""));
    assert.equal(error.class, "stream_interrupted");
  });
});

describe("D1 an upstream that stops halfway is an error to the consumer", { concurrency: true }, () => {
  for (const [name, cut] of /** @type {const} */ ([
    ["ends cleanly", half],
    ["is reset", () => ({ ...whole, resetAtByte: bytesOf(SAID) })],
  ])) {
    it(`D1 a stream that ${name} without a terminal marker gets an error event and then an error`, async (t) => {
      const { chat } = await rig(t, [cut()]);
      const { text, error } = await drain(await chat(streamed()));
      assert.ok(error instanceof KeelError);
      assert.equal(error.class, "stream_interrupted");
      assert.ok(text.startsWith(SAID.join("")), "what came is passed on unchanged");
      const last = JSON.parse(text.slice(SAID.join("").length).replace(/^data: /, ""));
      assert.match(
        last.error.message,
        /cut short/,
        "for a consumer behind a proxy, who sees no error of the connection",
      );
      assert.ok(!text.includes("[DONE]"));
    });
  }

  it("D1 Anthropic's stream gets Anthropic's error event", async (t) => {
    const message = anthropic.messageStream(TEXT);
    const said = message.body.slice(0, partsBefore(message.body, "keel") + 1);
    const { keel, upstream } = await rig(t, [{ ...message, body: said }]);
    const { text, error } = await drain(
      await keel.fetch(`${upstream.url}/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "claude-sonnet-5-5", max_tokens: 64, stream: true, messages: [] }),
      }),
    );
    assert.equal(error.class, "stream_interrupted");
    assert.match(text.slice(said.join("").length), /^event: error\ndata: \{"type":"error"/);
  });
});

/** A stream that says its first words and then, after each of `gaps` milliseconds, one of `parts`. */
async function after(/** @type {number[]} */ gaps, part = ": keep-alive\n\n") {
  const clock = fakeClock();
  const chunks = [...SAID, ...gaps.map((wait) => ({ wait, data: part }))];
  const upstream = scriptedUpstream([{ ...answers.chatStream(TEXT), chunks }], { clock });
  const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });
  const began = clock.now();
  const result = await clock.run(async () =>
    drain(
      await keel.fetch("https://api.openai.com/v1/chat/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        ...streamed(),
      }),
    ),
  );
  return { ...result, ms: clock.now() - began };
}

describe("D4 a silence in a stream has an end without anyone asking for one", { concurrency: true }, () => {
  it("D4 a connection that says nothing more is left after two minutes, by default", async () => {
    const { error, ms } = await after([12 * 3_600_000]);
    assert.equal(error.class, "stream_interrupted");
    assert.equal(error.reason, "chunk_gap_timeout");
    assert.ok(ms >= 119_000 && ms <= 125_000, `${ms} ms`);
  });

  it("D4 one that only sends keep-alives is left after five minutes", async () => {
    const { error, ms } = await after(Array.from({ length: 400 }, () => 10_000));
    assert.equal(error.reason, "content_gap_timeout");
    assert.ok(ms >= 299_000 && ms <= 311_000, `${ms} ms`);
  });
});

describe("D6 defaults are generous to reasoning models", { concurrency: true }, () => {
  it("D6 a model that thinks for minutes in a stream is not cut off", async () => {
    const thought = event({ choices: [{ index: 0, delta: { reasoning_content: "Hm." } }] });
    const { error, ms, text } = await after([...Array.from({ length: 9 }, () => 50_000), 0], thought);
    assert.equal(error.reason, "end_without_terminal", "it went on to the end of the script");
    assert.ok(ms >= 450_000, `${ms} ms`);
    assert.equal(text.split("reasoning_content").length - 1, 10);
  });

  it("D6 four minutes before the first token, filled with keep-alives, are waited through", async () => {
    const clock = fakeClock();
    const alive = Array.from({ length: 24 }, () => ({ wait: 10_000, data: ": keep-alive\n\n" }));
    const upstream = scriptedUpstream([{ ...answers.chatStream(TEXT), chunks: [...alive, ...whole.body] }], { clock });
    const began = clock.now();
    const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });
    const { error, text } = await clock.run(async () =>
      drain(
        await keel.fetch("https://api.openai.com/v1/chat/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          ...streamed(),
        }),
      ),
    );
    assert.equal(error, undefined);
    assert.ok(clock.now() - began >= 240_000);
    assert.ok(text.endsWith(sse("[DONE]")));
    assert.equal(upstream.seen.length, 1);
  });
});

describe("D8 a broken answer is not continued behind the caller's back", { concurrency: true }, () => {
  it("D8 after the first content nothing is sent again, and the first error is the one that is told", async (t) => {
    const rejected = openai.error(400, { message: "This model does not support assistant message prefill." });
    const { chat, upstream } = await rig(t, [half(), rejected]);
    const { error } = await drain(await chat(streamed()));
    assert.equal(error.reason, "end_without_terminal");
    assert.equal(upstream.seen.length, 1);
  });

  it("D8 before it, what is sent again is the caller's request and nothing else", async (t) => {
    const { chat, upstream } = await rig(t, [openai.overloadedInStream(), whole]);
    assert.equal((await drain(await chat(streamed()))).error, undefined);
    const [first, second] = upstream.seen;
    assert.equal(first?.body, second?.body);
    assert.equal(first?.body, streamed().body);
  });
});

describe("D11 a truncated stream is typed, and says what was received", { concurrency: true }, () => {
  it("D11 error, attempt and call say that it was interrupted, and how much had been delivered", async (t) => {
    const { chat, attempts, calls } = await rig(t, [{ ...whole, resetAtByte: bytesOf(SAID) }]);
    const { error } = await drain(await chat(streamed()));
    assert.ok(error instanceof KeelError);
    assert.deepEqual([error.class, error.retryable], ["stream_interrupted", true]);
    const [attempt] = await attempts();
    assert.equal(error.attempts.at(-1)?.bytes, bytesOf(SAID));
    assert.equal(attempt.bytes, bytesOf(SAID));
    assert.deepEqual(
      [attempt.status, attempt.error_class, attempt.delivery, attempt.terminal_marker, attempt.finish_reason],
      ["failed", "stream_interrupted", "answered", false, null],
    );
    assert.notEqual(attempt.first_token_ms, null);
    const [call] = await calls();
    assert.deepEqual([call.status, call.error_class, call.attempts], ["failed", "stream_interrupted", 1]);
  });
});

describe('commitOn: "end" releases whole answers only', { concurrency: true }, () => {
  const toolCall = (/** @type {object} */ delta, /** @type {string | null} */ finish = null) =>
    event({ id: "chatcmpl-1", choices: [{ index: 0, delta, finish_reason: finish }] });
  const args = '{"city":"Kiel","days":3}';
  const tools = {
    ...whole,
    body: [
      toolCall({
        role: "assistant",
        tool_calls: [{ index: 0, id: "call_1", function: { name: "sail", arguments: "" } }],
      }),
      ...(args.match(/.{1,4}/g) ?? []).map((piece) =>
        toolCall({ tool_calls: [{ index: 0, function: { arguments: piece } }] }),
      ),
      toolCall({}, "tool_calls"),
      event("[DONE]"),
    ],
  };
  const atEnd = { stream: { commitOn: "end" } };

  for (const [name, broken] of /** @type {const} */ ([
    ["reset", { ...tools, resetAtByte: bytesOf(tools.body, 5) }],
    ["ended", { ...tools, body: tools.body.slice(0, 5) }],
    ["failed", { ...tools, body: [...tools.body.slice(0, 5), ...openai.overloadedInStream().body] }],
  ])) {
    it(`a tool call that was ${name} halfway is asked for again, and its JSON comes whole`, async (t) => {
      const { openai: client, upstream } = await rig(t, [broken, tools], atEnd);
      const stream = await client().chat.completions.create({ model: "gpt-5", messages: [], stream: true });
      let json = "";
      let chunks = 0;
      for await (const chunk of stream) {
        chunks++;
        json += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
      }
      assert.deepEqual(JSON.parse(json), JSON.parse(args));
      assert.equal(chunks, tools.body.length - 1, "it is a stream still");
      assert.equal(upstream.seen.length, 2);
    });
  }

  it("is released only when the upstream has ended it, byte for byte", async (t) => {
    const { chat, upstream } = await rig(t, [{ ...whole, delayBetweenChunksMs: 10 }], atEnd);
    const response = await chat(streamed());
    assert.equal(upstream.seen[0]?.completed, true);
    assert.equal(response.headers.get("content-type"), whole.headers?.["content-type"]);
    assert.equal(await response.text(), whole.body.join(""));
  });

  it("when every attempt breaks nobody gets half: the call fails", async (t) => {
    const { chat, upstream } = await rig(t, () => ({ ...whole, resetAtByte: bytesOf(SAID) }), atEnd);
    await assert.rejects(chat(streamed()), (error) => error instanceof KeelError && error.attempts.length === 3);
    assert.equal(upstream.seen.length, 3);
  });

  it("past maxHeldBytes it is let go, and a break after that is an error as in any stream", async (t) => {
    const long = openai.chatStream("even ".repeat(400));
    const { chat, upstream } = await rig(t, [{ ...long, body: long.body.slice(0, 300) }], {
      stream: { commitOn: "end", maxHeldBytes: 4096 },
    });
    const { error, text } = await drain(await chat(streamed()));
    assert.equal(error.class, "stream_interrupted");
    assert.ok(text.length > 4096);
    assert.equal(upstream.seen.length, 1);
  });
});
