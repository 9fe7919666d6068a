// What an attacker, or odd input, must not get out of a keel.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import vm from "node:vm";
import { createKeel, KeelConfigError, KeelError } from "evenkeel";

const U = "https://api.openai.com/v1/chat/completions";
const JSON_TYPE = { "content-type": "application/json" };
const ok = () => Response.json({ model: "gpt-5", choices: [{ message: { content: "hi" }, finish_reason: "stop" }] });
const fail = (status, headers = {}) => Response.json({ error: { message: "m" } }, { status, headers });
const post = (more = {}) => ({ method: "POST", headers: JSON_TYPE, body: '{"model":"gpt-5"}', ...more });

function keelOf(fetch, options = {}) {
  const records = [];
  const keel = createKeel({
    fetch,
    ledger: (r) => records.push(r),
    retry: { baseMs: 1, capMs: 2 },
    breaker: false,
    ...options,
  });
  return { keel, records };
}

describe("keys", () => {
  const pools = [{ provider: "openai", organisation: "o", keys: [{ id: "a", value: "POOL-SECRET" }] }];

  it("go where the host's own URL parser says that a request goes, and nowhere else", async () => {
    for (const [url, key] of [
      ["https://evil.com\\@api.openai.com/v1/chat/completions", null],
      ["https://api.openai.com@evil.com/v1/chat/completions", null],
      ["https://api.openai.com.evil.com/v1/chat/completions", null],
      ["https://api.openai.com\\v1/chat/completions", "Bearer POOL-SECRET"],
      [U, "Bearer POOL-SECRET"],
    ]) {
      let sent;
      const { keel } = keelOf(
        async (_, init) => {
          sent = new Headers(init.headers).get("authorization");
          return ok();
        },
        { pools },
      );
      await keel.fetch(url, post());
      assert.equal(sent, key, url);
    }
  });

  it("stand in no error, whatever the host says of them", async () => {
    const shown = [];
    const see = (error) => shown.push(inspect(error, { depth: 9 }));
    await createKeel({ pools: [{ ...pools[0], keys: [{ id: "a", value: () => "POOL-SECRET\nx" }] }] })
      .fetch(U, post())
      .catch(see);
    await createKeel()
      .fetch(U, post({ headers: { authorization: "Bearer OWN-SECRET\nx" } }))
      .catch(see);
    await createKeel().fetch("https://api.openai.com:99999/v1?key=URL-SECRET", post()).catch(see);
    await createKeel().fetch("https://user:URL-SECRET@api.openai.com/v1/chat/completions", post()).catch(see);
    await createKeel().fetch("https://user:URL@URL-SECRET@api.openai.com:99999/v1", post()).catch(see);
    await createKeel().fetch("ht!tp://user:URL-SECRET@api.openai.com/v1", post()).catch(see);
    const quoted = "no header holds Bearer OWN-SECRET";
    for (const thrown of [quoted, { message: quoted }, vm.runInNewContext(`new TypeError("${quoted}")`)]) {
      await createKeel({ fetch: () => Promise.reject(thrown), retry: { maxAttempts: 1 } })
        .fetch(U, post({ headers: { authorization: "Bearer OWN-SECRET" } }))
        .catch(see);
    }
    for (const options of [
      { apiKey: "OPTION-SECRET" },
      { providers: { openai: { apiKey: "OPTION-SECRET" } } },
      { pools: [{ ...pools[0], keys: [{ id: "a", value: "POOL-SECRET\n" }] }] },
      { pools: [{ ...pools[0], provider: "POOL-SECRET" }] },
    ]) {
      try {
        createKeel(options);
      } catch (error) {
        see(error);
      }
    }
    assert.equal(shown.length, 13);
    for (const text of shown) assert.doesNotMatch(text, /SECRET/);
  });

  it("can't be moved to another provider by a separator in a name", () => {
    for (const options of [
      { pools: [{ ...pools[0], keys: [{ id: "a\u001db", value: "k" }] }] },
      { providers: { "p\u001enotice": { match: ["h.io"] } } },
      { tenants: { "x\ty": { concurrency: 1 } } },
      { tenants: { [`z${"z".repeat(200)}`]: { concurrency: 1 } } },
      { pools: [{ ...pools[0], baseURL: "data:,x" }] },
    ]) {
      assert.throws(() => createKeel(options), KeelConfigError);
    }
  });
});

describe("upstreams", () => {
  it("that ask for an eternity get the caller the answer, and the ledger its records", async () => {
    for (const headers of [{ "retry-after": "9999999999999" }, { "retry-after-ms": "9007199254740993000" }]) {
      const { keel, records } = keelOf(async () => fail(429, headers));
      const response = await keel.fetch(U, post());
      assert.equal(response.status, 429);
      assert.deepEqual(
        records.filter((r) => r.type !== "notice").map((r) => r.type),
        ["attempt", "call"],
      );
    }
  });

  it("that are no upstream at all leave no permit behind", async () => {
    for (const answer of [undefined, null]) {
      const { keel } = keelOf(async () => answer, { concurrency: { max: 1, queueMs: 300 } });
      for (let n = 0; n < 2; n += 1) {
        const error = await keel.fetch(U, post()).then(assert.fail, (e) => e);
        assert.notEqual(error.reason, "queue_timeout");
      }
      assert.equal(keel.state().permits.held, 0);
    }
  });

  it("that answer without end past the kept part still end with the caller or the total", async () => {
    const endless = async (_, init) => {
      let n = 0;
      return new Response(
        new ReadableStream({
          async pull(c) {
            n += 1;
            if (n < 4) c.enqueue(new Uint8Array(1_000).fill(65));
            else
              await new Promise((_r, reject) =>
                init.signal.addEventListener("abort", () => reject(init.signal.reason)),
              );
          },
        }),
        { headers: JSON_TYPE },
      );
    };
    const aborter = new AbortController();
    const { keel } = keelOf(endless, { body: { maxBufferedBytes: 1_024 } });
    const response = await keel.fetch(U, post({ signal: aborter.signal }));
    const text = response.text();
    aborter.abort(new Error("mine"));
    await assert.rejects(text, /mine/);
    assert.equal(getEventListeners(aborter.signal, "abort").length, 0);
    const { keel: short } = keelOf(endless, { body: { maxBufferedBytes: 1_024 }, timeouts: { totalMs: 200 } });
    await assert.rejects((await short.fetch(U, post())).text());
  });
});

describe("callers", () => {
  it("get records of their own body only, whatever failed before", async () => {
    const { keel, records } = keelOf(async () => ok(), { hashKey: "k" });
    const bytes = (text) => new TextEncoder().encode(text);
    await keel.fetch(U, post({ headers: [[Symbol("x"), "x"]], body: bytes('{"model":"evil"}') })).catch(() => {});
    await keel.fetch(U, post({ body: bytes('{"model":"gpt-5"}') }));
    const { model, input_token_estimate } = records.findLast((r) => r.type === "call");
    assert.deepEqual([model, input_token_estimate], ["gpt-5", 5]);
  });

  it("may give headers in every form that fetch takes, also for a second attempt", async () => {
    for (const headers of [
      new Map([["authorization", "Bearer x"]]),
      new Map([["authorization", "Bearer x"]]).entries(),
      [["authorization", "Bearer x"]],
      { Authorization: "Bearer x" },
    ]) {
      const sent = [];
      const { keel } = keelOf(async (_, init) => {
        sent.push(new Headers(init.headers).get("authorization"));
        return sent.length === 1 ? fail(500) : ok();
      });
      assert.equal((await keel.fetch(U, post({ headers }))).status, 200);
      assert.deepEqual(sent, ["Bearer x", "Bearer x"]);
    }
  });

  it("may share one signal among many calls: one listener, and none when they have ended", async () => {
    const { signal } = new AbortController();
    const { keel } = keelOf(() => new Promise((resolve) => setTimeout(() => resolve(ok()), 20)));
    const calls = Array.from({ length: 30 }, () => keel.fetch(U, post({ signal })));
    assert.equal(getEventListeners(signal, "abort").length, 1);
    await Promise.all(calls);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });

  it("may wrap a global fetch that is a keel's", async () => {
    const host = globalThis.fetch;
    try {
      globalThis.fetch = async () => ok();
      const keel = createKeel();
      globalThis.fetch = keel.fetch;
      let passed = 0;
      const inner = globalThis.fetch;
      globalThis.fetch = (...args) => {
        passed += 1;
        if (passed > 5) throw new Error("recursed");
        return inner(...args);
      };
      assert.equal((await globalThis.fetch(U, post())).status, 200);
    } finally {
      globalThis.fetch = host;
    }
  });

  it("get an order that may have gone through only once", async () => {
    let sent = 0;
    const { keel } = keelOf(async () => {
      sent += 1;
      return new Response("", { status: 503 });
    });
    const response = await keel.fetch("https://shop.example/api/orders", post({ body: '{"item":1}' }));
    assert.deepEqual(
      [response.status, response.headers.get("x-evenkeel-reason"), sent],
      [503, "not_safe_to_repeat", 1],
    );
    const error = await keelOf(async () => {
      throw Object.assign(new TypeError("fetch failed"), {
        cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }),
      });
    })
      .keel.fetch("https://shop.example/api/orders", post({ body: "{}" }))
      .then(assert.fail, (e) => e);
    assert.ok(error instanceof KeelError);
    assert.equal(error.attempts.length, 3, "what was not sent may be sent again");
  });

  it("pay once: the call after a billing error reaches the provider", async () => {
    let sent = 0;
    const { keel } = keelOf(async () => {
      sent += 1;
      return sent === 1 ? Response.json({ error: { code: "insufficient_quota" } }, { status: 429 }) : ok();
    });
    assert.equal((await keel.fetch(U, post())).status, 429);
    assert.equal((await keel.fetch(U, post())).status, 200);
  });
});
