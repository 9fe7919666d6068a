// `evenkeel/testing`: the example of its documentation as it stands there, and what the kit itself promises.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { fakeClock, openai, scriptedUpstream, seededRandom, transportError } from "evenkeel/testing";

const root = fileURLToPath(new URL("../../", import.meta.url));
const url = "https://api.example.com/v1/chat/completions";

test("the example for node:test in docs/testing.md passes as it stands there", (t) => {
  const text = readFileSync(join(root, "docs/testing.md"), "utf8");
  const code = /## With `node:test`\n\n```js\n([\s\S]*?)```/.exec(text)?.[1];
  assert.ok(code !== undefined, "the example has moved");
  mkdirSync(join(root, "build"), { recursive: true });
  const folder = mkdtempSync(join(root, "build", "example-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "summarize.test.mjs"), code);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const file = join(folder, "summarize.test.mjs");
  const output = execFileSync(process.execPath, ["--test", "--test-reporter=tap", file], { encoding: "utf8", env });
  assert.match(output, /^# pass 2$/m);
});

// Vitest runs it among the examples: tests/packaging/examples.mjs.
test("the example for Vitest in docs/testing.md is the one in examples/vitest, to the letter", () => {
  const text = readFileSync(join(root, "docs/testing.md"), "utf8");
  const code = /## With Vitest\n\n```js\n([\s\S]*?)```/.exec(text)?.[1];
  assert.equal(code, readFileSync(join(root, "examples/vitest/stream.test.js"), "utf8"));
});

describe("the fake clock", () => {
  test("fires timers in order of their time, and those of one time in the order in which they were set", async () => {
    const clock = fakeClock({ now: 0 });
    const fired = [];
    for (const [name, ms] of [
      ["c", 20],
      ["a", 10],
      ["b", 10],
    ])
      clock.setTimeout(() => fired.push([name, clock.now()]), ms);
    await clock.advance(15);
    assert.deepEqual(fired, [
      ["a", 10],
      ["b", 10],
    ]);
    assert.equal(clock.now(), 15);
    await clock.runUntilIdle();
    assert.deepEqual(fired.at(-1), ["c", 20]);
    assert.equal(clock.pending, 0);
  });

  test("a timer that was cleared does not fire", async () => {
    const clock = fakeClock();
    const timer = clock.setTimeout(() => assert.fail("it fired"), 10);
    clock.clearTimeout(timer);
    await clock.advance(100);
  });

  test("run gives what the work gives, and throws what it throws", async () => {
    const clock = fakeClock({ now: 0 });
    assert.equal(
      await clock.run(async () => {
        await clock.sleep(3_600_000);
        return clock.now();
      }),
      3_600_000,
    );
    await assert.rejects(
      clock.run(() => Promise.reject(new Error("mine"))),
      /mine/,
    );
  });

  test("run says so when the work waits for what no timer brings about", async () => {
    await assert.rejects(
      fakeClock({ stuckMs: 20 }).run(() => new Promise(() => {})),
      /has not ended after 20 ms/,
    );
  });
});

describe("the scripted upstream", () => {
  test("a request beyond the script is answered by a 400 that names it", async () => {
    const response = await scriptedUpstream([]).fetch(url, { method: "POST" });
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, /no step for request 1, POST https/);
  });

  test("sees url, method, headers and body of whatever kind", async () => {
    const upstream = scriptedUpstream(() => ({}));
    const body = '{"a":1}';
    const headers = { "X-Mine": "1" };
    await upstream.fetch(url, { method: "POST", headers, body });
    await upstream.fetch(new URL(url), { method: "POST", headers, body: new TextEncoder().encode(body) });
    await upstream.fetch(new Request(url, { method: "POST", headers, body: new Blob([body]) }));
    for (const request of upstream.seen) {
      assert.deepEqual(
        [request.url, request.method, request.headers["x-mine"], request.json],
        [url, "POST", "1", { a: 1 }],
      );
    }
  });

  test("chunks come by the clock, and a stall never ends", async () => {
    const clock = fakeClock({ now: 0 });
    const upstream = scriptedUpstream(
      [{ chunks: ["a", { data: "b", wait: 50 }, "c"], gapMs: 10, delayMs: 5, end: "stall" }],
      { clock },
    );
    const came = [];
    const reading = clock.run(async () => {
      const reader = (await upstream.fetch(url)).body.getReader();
      for (let i = 0; i < 3; i++) came.push([new TextDecoder().decode((await reader.read()).value), clock.now()]);
      const race = await Promise.race([reader.read(), clock.sleep(10_000)]);
      await reader.cancel();
      return race;
    });
    assert.equal(await reading, undefined);
    assert.deepEqual(came, [
      ["a", 5],
      ["b", 55],
      ["c", 65],
    ]);
    assert.equal(upstream.seen[0].aborted, true);
  });

  test("a cut ends cleanly, a reset with the runtime's own error after what was sent", async () => {
    const clock = fakeClock();
    const steps = [
      { body: "abcdef", cutAt: 4 },
      { body: "abcdef", cutAt: 4, end: "reset", as: "deno" },
    ];
    const upstream = scriptedUpstream(steps, { clock });
    assert.equal(await clock.run(async () => (await upstream.fetch(url)).text()), "abcd");
    const reader = (await clock.run(() => upstream.fetch(url))).body.getReader();
    assert.equal(new TextDecoder().decode((await reader.read()).value), "abcd");
    await assert.rejects(
      clock.run(() => reader.read()),
      /error reading a body from connection/,
    );
  });

  test("an abort ends a wait, a hang and a body with the signal's reason, and leaves no listener", async () => {
    const upstream = scriptedUpstream([{ delayMs: 60_000 }, { hang: true }, { chunks: ["a"], end: "stall" }]);
    for (const _ of [1, 2, 3]) {
      const controller = new AbortController();
      const call = upstream.fetch(url, { signal: controller.signal }).then((response) => response.text());
      setTimeout(() => controller.abort(new Error("enough")), 5);
      await assert.rejects(call, /enough/);
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    }
    assert.deepEqual(
      upstream.seen.map((request) => request.aborted),
      [true, true, true],
    );
  });

  test("failures of the connection are worded as the runtime words them", async () => {
    assert.equal(transportError("refused").cause.code, "ECONNREFUSED");
    assert.equal(transportError("refused", "bun").code, "ConnectionRefused");
    await assert.rejects(scriptedUpstream([{ fail: "reset", as: "workerd" }]).fetch(url), /Network connection lost/);
    await assert.rejects(scriptedUpstream([{ fail: new RangeError("own") }]).fetch(url), RangeError);
  });

  test("a stream builder says the whole text and ends with its marker", async () => {
    const text = await (await scriptedUpstream([openai.chatStream("one two")]).fetch(url)).text();
    assert.match(text, /"one"[\s\S]*" two"[\s\S]*\[DONE\]\n\n$/);
  });
});

test("random numbers of a seed are the same ever after", () => {
  const random = seededRandom(42);
  assert.deepEqual([random(), random(), random()], [0.6011037519201636, 0.44829055899754167, 0.8524657934904099]);
});
