// What nobody means to give the control plane, and hosts give it all the same: huge names, clocks that jump or stand still.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { createKeel, KeelConfigError } from "evenkeel";

const CHAT = "https://api.openai.com/v1/chat/completions";
const good = () =>
  Response.json({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }], usage: { completion_tokens: 1 } });
const limited = (seconds) =>
  Response.json(
    { error: { message: "no", code: "rate_limit_exceeded" } },
    { status: 429, headers: { "retry-after": String(seconds) } },
  );

/** A keel whose clock is what the test says, while its timers fire at once. */
function rig(answers, options = {}) {
  const time = { now: Date.UTC(2026, 10, 30, 8), advances: true };
  const sent = [];
  const clock = {
    now: () => time.now,
    setTimeout(callback, ms) {
      return setImmediate(() => {
        if (time.advances) time.now += ms;
        callback();
      });
    },
    clearTimeout: (handle) => clearImmediate(handle),
  };
  const keel = createKeel({
    clock,
    seed: 1,
    fetch: async () => {
      sent.push(time.now);
      return answers(sent.length);
    },
    ...options,
  });
  const call = (context = {}) => keel.with(context).fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}' });
  return { time, keel, call, sent };
}

describe("a tenant's name", () => {
  it("of a megabyte is a tenant like any other, and its records hold the beginning", async () => {
    const records = [];
    const { call, keel } = rig(good, {
      ledger: (record) => records.push(record),
      tenants: { default: { concurrency: 1 } },
    });
    const tenant = "x".repeat(1_048_576);
    const answers = await Promise.all([call({ tenant }), call({ tenant }), call({ tenant: "acme" })]);
    assert.ok(answers.every((response) => response.status === 200));
    assert.ok(records.every((record) => (record.user_or_tenant_id ?? "").length <= 128));
    assert.ok(JSON.stringify(keel.state()).length < 10_000);
  });

  it("of more is refused", () => {
    const { keel } = rig(good);
    assert.throws(
      () => keel.with({ tenant: "x".repeat(1_048_577) }),
      (error) => error instanceof KeelConfigError && error.path === "tenant" && error.message.length < 200,
    );
  });
});

describe("a clock", () => {
  it("that jumps back keeps a rate limit for its own length, and no longer", async () => {
    const { time, call, sent, keel } = rig((n) => (n === 1 ? limited(30) : good()), { retry: { maxAttempts: 1 } });
    assert.equal((await call()).status, 429);
    time.now -= 86_400_000;
    const back = time.now;
    assert.equal((await call()).status, 200);
    assert.ok(sent[1] - back >= 30_000 && sent[1] - back < 40_000, `sent ${sent[1] - back} ms later`);
    assert.equal(keel.state().permits.held, 0);
  });

  it("that jumps back during a call gives it no more time than it had, in every state of it", async () => {
    const never = () => new Promise(() => {});
    const streaming = (more) => {
      const start = (controller) => controller.enqueue(new TextEncoder().encode(more));
      return new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });
    };
    const states = {
      head: never,
      body: () => new Response(new ReadableStream({}), { headers: { "content-type": "application/json" } }),
      "held stream": () => streaming(": wait\n\n"),
      "stream that goes on": () => streaming('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'),
    };
    for (const [state, answer] of Object.entries(states)) {
      for (const back of [1_000, 3_600_000, Date.UTC(2026, 10, 30, 8)]) {
        const records = [];
        let waited = 0;
        const { time, call, keel } = rig(answer, {
          ledger: (record) => records.push(record),
          timeouts: { totalMs: 60_000 },
          retry: { maxAttempts: 1 },
          clock: {
            now: () => time.now,
            setTimeout: (callback, ms) =>
              setImmediate(() => {
                waited += ms;
                time.now += ms;
                callback();
              }),
            clearTimeout: clearImmediate,
          },
        });
        const ended = call().then((response) => response.text());
        time.now -= back;
        await assert.rejects(ended, undefined, state);
        assert.ok(waited <= 61_000, `${state}: ${waited} ms`);
        assert.equal(records.filter(({ type }) => type === "call").length, 1, state);
        assert.ok(
          records.every((record) => !(record.latency_ms > 61_000)),
          state,
        );
        assert.equal(keel.state().permits.held, 0, state);
      }
    }
  });

  it("that jumps ahead by a year ends what waited, and nothing else", async () => {
    const { time, call, keel } = rig((n) => (n === 1 ? limited(30) : good()), { retry: { maxAttempts: 1 } });
    await call();
    time.now += 365 * 86_400_000;
    assert.equal((await call()).status, 200);
    assert.deepEqual([keel.state().permits.held, keel.state().waiting], [0, 0]);
  });

  it("that stands still, as on Workers, stops no retry, no wait for a hint and no wait for a place", async () => {
    const { time, call, sent, keel } = rig((n) => (n === 1 ? limited(5) : n === 2 ? limited(0) : good()), {
      concurrency: { max: 1 },
    });
    time.advances = false;
    const answers = await Promise.all([call(), call(), call()]);
    assert.deepEqual(
      answers.map((response) => response.status),
      [200, 200, 200],
    );
    assert.equal(new Set(sent).size, 1, "it stood still all the time");
    assert.deepEqual([keel.state().permits.held, keel.state().waiting], [0, 0]);
  });
});

describe("a provider's name", () => {
  it("that no request can get is refused: it would wait for ever to be meant", () => {
    for (const providers of [{ opnai: { timeouts: { totalMs: 5 } } }, { OpenAI: {} }]) {
      const [name] = Object.keys(providers);
      assert.throws(
        () => createKeel({ providers }),
        (error) => error.path === `providers.${name}.match` && error.message.includes("openai, "),
      );
    }
  });

  it("may be a built-in one, a host, or one of the user's own", () => {
    for (const provider of ["llama.cpp", "127.0.0.1:8080", "llm.acme.io", "localhost", "mine"]) {
      const keys = [{ id: "k", value: "sk" }];
      createKeel({
        pools: [{ provider, organisation: "o", keys }],
        providers: provider === "mine" ? { mine: { match: ["x.io"] } } : { [provider]: {} },
      });
    }
  });

  it("is known where the core knows it", () => {
    const folder = new URL("../../src/classify/providers/", import.meta.url);
    const names = readdirSync(folder).flatMap((file) => {
      const [, name] = /\n {4}name: "([^"]+)"/.exec(readFileSync(new URL(file, folder), "utf8")) ?? [];
      return name === undefined ? [] : [name];
    });
    assert.ok(names.length > 20, String(names));
    for (const name of names) createKeel({ providers: { [name]: {} } });
  });
});

describe("what is no argument", () => {
  it("is told as such", async () => {
    const keel = createKeel();
    assert.throws(() => createKeel(null), /^KeelConfigError: the argument: got null, expected an object$/);
    assert.throws(() => keel.enableKey(undefined), KeelConfigError);
    assert.throws(() => createKeel({ concurrency: 4 }), /expected an object, or false$/);
    for (const url of [undefined, 5, "/v1/chat/completions"]) {
      const error = await keel.fetch(url, { method: "POST", body: "{}" }).then(assert.fail, (e) => e);
      assert.equal(error.reason, "invalid_url");
      assert.match(error.message, /check the base URL/);
    }
  });
});
