/** Streamed answers: unchanged bytes, retries up to the commit point and none after it, and never a clean end of what is not whole. */
import { drain } from "./harness.mjs";

export default function (test, { lib, testing: { openai, anthropic }, assert, rig }) {
  const whole = openai.chatStream("one two three four");
  const text = whole.chunks.join("");
  const upTo = (count) => whole.chunks.slice(0, count).join("");

  test("a whole stream comes through byte for byte, and is recorded as whole", async () => {
    const { run, chat, attempts, calls } = rig([{ ...whole, gapMs: 20 }]);
    const got = await run(async () => drain(await chat({ stream: true })));
    assert.deepEqual([got.text, got.error], [text, undefined]);
    assert.deepEqual([attempts()[0].terminal_marker, attempts()[0].finish_reason], [true, "stop"]);
    assert.deepEqual([calls()[0].status, attempts()[0].bytes], ["succeeded", new TextEncoder().encode(text).length]);
  });

  test("chunks may be cut anywhere, inside a character too", async () => {
    const words = openai.chatStream("grüße 世界 🌊");
    const bytes = new TextEncoder().encode(words.chunks.join(""));
    for (const size of [1, 3, 64]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.slice(i * size, (i + 1) * size),
      );
      const { run, chat, calls } = rig([{ ...words, chunks }]);
      const got = await run(async () => drain(await chat({ stream: true })));
      assert.equal(got.text, words.chunks.join(""));
      assert.equal(calls()[0].status, "succeeded");
    }
  });

  test("an error event before the first content is tried again, and one clean stream is seen", async () => {
    const broken = { ...whole, chunks: [whole.chunks[0], openai.errorEvent()] };
    const { run, chat, upstream, attempts } = rig([broken, whole]);
    const got = await run(async () => drain(await chat({ stream: true })));
    assert.deepEqual([got.text, got.error], [text, undefined]);
    assert.equal(upstream.seen.length, 2);
    assert.equal(attempts()[0].http_status, 200);
  });

  const endings = [
    ["an error event", { chunks: [...whole.chunks.slice(0, 3), openai.errorEvent()] }],
    ["a cut", { chunks: whole.chunks.slice(0, 3) }],
    ["a reset", { chunks: whole.chunks.slice(0, 3), end: "reset" }],
    ["a stall", { chunks: whole.chunks.slice(0, 3), end: "stall" }],
  ];
  for (const [name, change] of endings) {
    test(`${name} after the first content ends the stream in an error event and an error`, async () => {
      const { run, chat, upstream, calls, clock } = rig([{ ...whole, ...change }], { timeouts: { chunkGapMs: 5_000 } });
      const got = await run(async () => drain(await chat({ stream: true })));
      assert.ok(got.text.startsWith(upTo(3)), got.text);
      assert.match(got.text.slice(upTo(3).length), /"error":/);
      assert.ok(got.error instanceof lib.KeelError, String(got.error));
      assert.equal(upstream.seen.length, 1);
      assert.equal(calls()[0].status, "failed");
      assert.equal(clock.pending, 0);
    });

    test(`${name} before the first content is tried again`, async () => {
      const early = { ...whole, ...change, chunks: [whole.chunks[0], ...change.chunks.slice(3)] };
      const { run, chat, upstream } = rig([early, whole], { timeouts: { chunkGapMs: 5_000 } });
      const got = await run(async () => drain(await chat({ stream: true })));
      assert.deepEqual([got.text, got.error], [text, undefined]);
      assert.equal(upstream.seen.length, 2);
    });
  }

  test("a reader who stops reading ends the upstream's work", async () => {
    const { run, chat, upstream, calls, clock } = rig([{ ...whole, gapMs: 100 }]);
    await run(async () => {
      const reader = (await chat({ stream: true })).body.getReader();
      await reader.read();
      await reader.cancel("seen enough");
    });
    await clock.advance(1);
    assert.equal(upstream.seen[0].aborted, true);
    assert.equal(calls()[0].status, "cancelled");
    assert.equal(clock.pending, 0);
  });

  test("a signal that fires in the middle of a stream errors it with the own reason", async () => {
    const { run, chat, upstream, calls, clock } = rig([{ ...whole, gapMs: 100 }]);
    const controller = new AbortController();
    const reason = new Error("enough");
    const got = await run(async () => {
      const response = await chat({ stream: true, signal: controller.signal });
      clock.setTimeout(() => controller.abort(reason), 150);
      return drain(response);
    });
    assert.ok(got.error === reason, String(got.error));
    assert.equal(upstream.seen[0].aborted, true);
    assert.equal(calls()[0].status, "cancelled");
  });

  test("a slow reader is not taken for a slow provider", async () => {
    const { run, chat, clock } = rig([{ ...whole, gapMs: 10 }], { timeouts: { chunkGapMs: 2_000 } });
    const got = await run(async () => {
      const reader = (await chat({ stream: true })).body.getReader();
      let bytes = 0;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return bytes;
        bytes += value.byteLength;
        await clock.sleep(30_000);
      }
    });
    assert.equal(got, new TextEncoder().encode(text).length);
  });

  const commits = [
    ["head", 0],
    ["first-event", 100],
    ["first-content", 200],
    ["end", 700],
  ];
  for (const [commitOn, at] of commits) {
    test(`commitOn ${commitOn} gives the answer when it says`, async () => {
      const chunks = whole.chunks.map((data) => ({ data, wait: 100 }));
      const { run, chat, elapsed } = rig([{ ...whole, chunks }], { stream: { commitOn } });
      const response = await run(() => chat({ stream: true }));
      assert.between(elapsed(), at, at + 99, commitOn);
      assert.equal(await run(() => response.text()), text);
    });
  }

  test("commitOn end tries a stream again that broke late", async () => {
    const { run, chat, upstream } = rig([{ ...whole, chunks: whole.chunks.slice(0, 4) }, whole], {
      stream: { commitOn: "end" },
    });
    assert.equal(await run(async () => (await chat({ stream: true })).text()), text);
    assert.equal(upstream.seen.length, 2);
  });

  test("Anthropic's stream is whole at message_stop, and its error event ends it in Anthropic's words", async () => {
    const stream = anthropic.messageStream("one two");
    const { run, keel } = rig([stream, { ...stream, chunks: [...stream.chunks.slice(0, 4), anthropic.errorEvent()] }]);
    const ask = () =>
      keel.fetch("https://api.anthropic.com/v1/messages", {
        method: "POST",
        body: JSON.stringify({ model: "claude-sonnet-4-5", stream: true, max_tokens: 10, messages: [] }),
      });
    assert.equal(await run(async () => (await ask()).text()), stream.chunks.join(""));
    const got = await run(async () => drain(await ask()));
    assert.match(got.text, /event: error\ndata: .*overloaded_error/);
    assert.ok(got.error instanceof lib.KeelError, String(got.error));
  });

  test("thirty streams at once, every third broken off, each get their own", async () => {
    const { run, chat, calls, clock } = rig((seen) => ({
      ...openai.chatStream(seen.json.messages[0].content),
      gapMs: 5 + (seen.n % 7),
    }));
    const got = await run(() =>
      Promise.all(
        Array.from({ length: 30 }, async (_, i) => {
          const response = await chat({ stream: true, prompt: `own number${i} end` });
          if (i % 3 === 0) {
            await response.body.cancel();
            return i;
          }
          return (await response.text()).includes(`number${i}"`) ? i : -1;
        }),
      ),
    );
    await clock.advance(1);
    assert.deepEqual(
      got,
      Array.from({ length: 30 }, (_, i) => i),
    );
    assert.deepEqual([calls().length, clock.pending], [30, 0]);
  });
}
