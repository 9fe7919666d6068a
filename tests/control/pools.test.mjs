// Pools, keys, tenants and breakers as a user meets them: through plain keel.fetch, over a fetch that plays the provider.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel, KeelConfigError, KeelError } from "evenkeel";
import { fakeClock } from "evenkeel/testing";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const GOOD = {
  choices: [{ message: { content: "hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 3, completion_tokens: 9 },
};

/** A provider that answers by the key that it sees, and remembers the keys. */
function provider(answers) {
  const seen = [];
  const fetch = async (url, init) => {
    const headers = new Headers(init.headers);
    const key =
      headers.get("authorization")?.replace("Bearer ", "") ??
      headers.get("x-api-key") ??
      headers.get("x-goog-api-key") ??
      new URL(url).searchParams.get("key");
    seen.push({ key, url: String(url) });
    const answer = answers(key, seen.length);
    return answer instanceof Response ? answer : Response.json(answer ?? GOOD);
  };
  return { fetch, seen, keys: () => seen.map((one) => one.key) };
}

const fail = (status, error, headers = {}) =>
  Response.json({ error: { message: "no", ...error } }, { status, headers });
const pool = (organisation, keys, more = {}) => ({
  provider: "openai",
  organisation,
  keys: keys.map((id) => ({ id, value: `sk-${id}` })),
  ...more,
});

function keelOf(upstream, options = {}) {
  const records = [];
  const keel = createKeel({
    fetch: upstream.fetch,
    ledger: (r) => records.push(r),
    retry: { baseMs: 1, capMs: 2 },
    ...options,
  });
  const call = (
    url = OPENAI,
    headers = { authorization: "Bearer placeholder" },
    body = { model: "gpt-5" },
    signal = null,
  ) => keel.fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal });
  return {
    keel,
    records,
    call,
    notices: () => records.filter((r) => r.type === "notice").map((r) => `${r.kind} ${r.subject}`),
  };
}

describe("pools", () => {
  it("send a pool's key in the header that the request used, and nowhere else", async () => {
    const upstream = provider(() => undefined);
    const { call, records, keel } = keelOf(upstream, {
      pools: [
        pool("a", ["one"]),
        { provider: "anthropic", organisation: "b", keys: [{ id: "two", value: async () => "sk-two" }] },
        { provider: "gemini", organisation: "c", keys: [{ id: "three", value: () => "sk-three" }] },
      ],
    });
    await call();
    await call("https://api.anthropic.com/v1/messages", { "x-api-key": "placeholder" });
    await call("https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent", {
      "x-goog-api-key": "p",
    });
    await call("https://generativelanguage.googleapis.com/v1beta/models/gemini-3:generateContent?key=p", {});
    assert.deepEqual(upstream.keys(), ["sk-one", "sk-two", "sk-three", "sk-three"]);
    await keel.flush();
    const told = JSON.stringify([records, keel.state()]);
    assert.doesNotMatch(told, /sk-(one|two|three)/);
    assert.deepEqual(
      records.filter((r) => r.type === "attempt").map((r) => r.bucket),
      ["openai/a/gpt-5", "anthropic/b/gpt-5", "gemini/c/gpt-5", "gemini/c/gpt-5"],
    );
  });

  it("go on with another organisation at once when one has no money left, and leave that one alone", async () => {
    const upstream = provider((key) =>
      key === "sk-a1" ? fail(429, { code: "insufficient_quota", type: "insufficient_quota" }) : undefined,
    );
    const { call, notices } = keelOf(upstream, { pools: [pool("a", ["a1"]), pool("b", ["b1"])] });
    for (let n = 0; n < 4; n += 1) assert.equal((await call()).status, 200);
    assert.equal(upstream.keys().filter((key) => key === "sk-a1").length, 1);
    assert.equal(upstream.seen.length, 5);
    assert.ok(notices().includes("quota_exhausted openai/a/gpt-5"), String(notices()));
  });

  it("do not pretend that another key of the same organisation is another limit", async () => {
    const upstream = provider(() => fail(429, { code: "rate_limit_exceeded" }, { "retry-after": "3600" }));
    const { call } = keelOf(upstream, { pools: [pool("a", ["a1", "a2"])] });
    const response = await call();
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("x-evenkeel-reason"), "wait_too_long");
    assert.equal(upstream.seen.length, 1);
  });

  it("disable a key that is refused, use the next, and enable it again when a person says so", async () => {
    let revoked = true;
    const upstream = provider((key) =>
      key === "sk-a1" && revoked ? fail(401, { code: "invalid_api_key" }) : undefined,
    );
    const { call, keel, notices } = keelOf(upstream, { pools: [pool("a", ["a1", "a2"])] });
    for (let n = 0; n < 3; n += 1) assert.equal((await call()).status, 200);
    assert.equal(upstream.keys().filter((key) => key === "sk-a1").length, 1);
    assert.ok(notices().includes("key_disabled a1"));
    revoked = false;
    keel.enableKey("a1");
    for (let n = 0; n < 2; n += 1) await call();
    assert.equal(upstream.keys().filter((key) => key === "sk-a1").length, 2);
    assert.ok(notices().includes("key_enabled a1"));
    assert.throws(() => keel.enableKey("nobody"), KeelConfigError);
  });

  it("let a call that waits for another pool go at once when a key is enabled", async () => {
    let revoked = true;
    const upstream = provider((key) => {
      if (!revoked) return undefined;
      if (key === "sk-a1") return fail(401, { code: "invalid_api_key" });
      return fail(429, { code: "rate_limit_exceeded" }, { "retry-after": "30" });
    });
    const clock = fakeClock();
    const { call, keel } = keelOf(upstream, { pools: [pool("a", ["a1"]), pool("b", ["b1"])], clock });
    const first = call();
    await clock.advance(100);
    const waiting = call();
    await clock.advance(100);
    assert.equal(keel.state().waiting, 1);
    revoked = false;
    keel.enableKey("a1");
    assert.equal((await waiting).status, 200);
    assert.deepEqual(upstream.keys(), ["sk-a1", "sk-b1", "sk-a1"]);
    await clock.advance(60_000);
    assert.equal((await first).status, 200);
  });

  it("never give one call the key of another that begins inside it, from a sink", async () => {
    const upstream = provider((_, n) => (n === 1 ? fail(503, { code: "server_is_overloaded" }) : undefined));
    const inner = [];
    const keel = createKeel({
      fetch: upstream.fetch,
      retry: { baseMs: 1, capMs: 2 },
      pools: [
        pool("a", ["openai-key"]),
        { provider: "anthropic", organisation: "b", keys: [{ id: "anthropic-key", value: "sk-anthropic-key" }] },
      ],
      // Called between the core's answer and what the driver does with it.
      ledger: (record) => {
        if (record.type !== "attempt" || record.provider !== "openai" || inner.length > 3) return;
        inner.push(
          keel.fetch("https://api.anthropic.com/v1/messages", {
            method: "POST",
            headers: { "x-api-key": "p" },
            body: "{}",
          }),
        );
      },
    });
    const calls = Array.from({ length: 3 }, () =>
      keel.fetch(OPENAI, { method: "POST", headers: { authorization: "Bearer p" }, body: '{"model":"gpt-5"}' }),
    );
    await Promise.all(calls);
    await Promise.all(inner);
    for (const { url, key } of upstream.seen) {
      assert.equal(key, url.includes("anthropic") ? "sk-anthropic-key" : "sk-openai-key");
    }
    assert.ok(inner.length > 0);
  });

  it("fail clearly when a key's function rejects, without the key", async () => {
    const upstream = provider(() => undefined);
    const { call } = keelOf(upstream, {
      pools: [
        {
          provider: "openai",
          organisation: "a",
          keys: [{ id: "vault", value: () => Promise.reject(new Error("vault sealed")) }],
        },
      ],
    });
    const error = await call().then(assert.fail, (e) => e);
    assert.ok(error instanceof KeelError, String(error));
    assert.match(String(error.cause?.message), /key "vault"/);
    assert.equal(upstream.seen.length, 0);
  });

  it("end with the deadline when a key's function hangs", async () => {
    const { call } = keelOf(
      provider(() => undefined),
      {
        timeouts: { totalMs: 50 },
        pools: [{ provider: "openai", organisation: "a", keys: [{ id: "slow", value: () => new Promise(() => {}) }] }],
      },
    );
    const error = await call().then(assert.fail, (e) => e);
    assert.equal(error.class, "timeout");
  });

  it("send to the pool's own base URL, with its models only", async () => {
    const upstream = provider(() => undefined);
    const { call } = keelOf(upstream, {
      pools: [
        pool("eu", ["e1"], { baseURL: "https://eu.gateway.io/llm", models: ["gpt-5"] }),
        pool("us", ["u1"], { models: ["gpt-5-mini"] }),
      ],
    });
    await call();
    await call(OPENAI, { authorization: "Bearer p" }, { model: "gpt-5-mini" });
    assert.deepEqual(upstream.seen, [
      { key: "sk-e1", url: "https://eu.gateway.io/llm/v1/chat/completions" },
      { key: "sk-u1", url: OPENAI },
    ]);
  });

  it("take a base URL as SDKs write it, with the version that every request brings along", async () => {
    for (const [baseURL, path] of [
      ["https://eu.gateway.io", "/v1/chat/completions"],
      ["https://eu.gateway.io/v1/", "/v1/chat/completions"],
      ["https://eu.gateway.io/llm", "/llm/v1/chat/completions"],
      ["https://eu.gateway.io/llm/v1", "/llm/v1/chat/completions"],
      ["https://eu.gateway.io/llm/v1/chat", "/llm/v1/chat/completions"],
      ["https://eu.gateway.io/llm/v", "/llm/v/v1/chat/completions"],
    ]) {
      const upstream = provider(() => undefined);
      const { call } = keelOf(upstream, { pools: [pool("eu", ["e1"], { baseURL })] });
      await call(`${OPENAI}?a=b`);
      assert.equal(upstream.seen[0].url, `https://eu.gateway.io${path}?a=b`);
    }
  });

  it("are refused when they make no sense, with the path and without the key", () => {
    const table = [
      [[pool("a", ["x"]), pool("b", ["x"])], "pools[1].keys[0].id"],
      [[pool("a", ["x"]), pool("a", ["y"])], "pools[1].organisation"],
      [[pool("a", [])], "pools[0].keys"],
      [[{ ...pool("a", ["x"]), baseURL: "nowhere" }], "pools[0].baseURL"],
      [[{ provider: "openai", organisation: "a", keys: [{ id: "x", value: "" }] }], "pools[0].keys[0].value"],
      [[{ provider: "openai", organisation: "a", keys: ["sk-live-secret"] }], "pools[0].keys[0]"],
      [[{ ...pool("a", ["x"]), wieght: 2 }], "pools[0].wieght"],
      [[{ ...pool("a", ["x"]), provider: "opnai" }], "pools[0].provider"],
      [[{ provider: "openai", organisation: "a", keys: [{ id: "x", value: undefined }] }], "pools[0].keys[0].value"],
      [
        [{ provider: "openai", organisation: "a", keys: [{ id: "x", value: "sk-live-secret\n" }] }],
        "pools[0].keys[0].value",
      ],
      [[{ provider: "openai", organisation: "a", keys: [{ value: "sk-live-secret" }] }], "pools[0].keys[0].id"],
    ];
    for (const [pools, path] of table) {
      const error = (() => {
        try {
          createKeel({ pools });
        } catch (e) {
          return e;
        }
        return undefined;
      })();
      assert.ok(error instanceof KeelConfigError, path);
      assert.equal(error.path, path);
      assert.doesNotMatch(error.message, /sk-/);
    }
  });
});

describe("breakers", () => {
  it("open after failures in a row, refuse at once with the time to come back, and say so", async () => {
    const upstream = provider(() => fail(500, { type: "server_error" }));
    const { call, notices, keel } = keelOf(upstream, {
      retry: { maxAttempts: 1 },
      breaker: { consecutiveFailures: 3, cooldownMs: 60_000 },
    });
    for (let n = 0; n < 3; n += 1) assert.equal((await call()).status, 500);
    const error = await call().then(assert.fail, (e) => e);
    assert.equal(error.reason, "breaker_open");
    assert.equal(error.class, "server_error");
    assert.ok(error.retryAfterMs > 0 && error.retryAfterMs <= 60_000);
    assert.equal(upstream.seen.length, 3);
    assert.ok(notices().some((n) => n.startsWith("breaker_opened")));
    assert.ok(keel.state().breakers.length > 0);
  });

  it("count no 400 against a healthy upstream", async () => {
    const upstream = provider(() => fail(400, { type: "invalid_request_error" }));
    const { call } = keelOf(upstream, { breaker: { consecutiveFailures: 2 } });
    for (let n = 0; n < 20; n += 1) assert.equal((await call()).status, 400);
  });

  it("give back the upstream's last answer when they open in the middle of a call", async () => {
    const upstream = provider(() => fail(503, { type: "server_error" }));
    const { call } = keelOf(upstream, { breaker: { consecutiveFailures: 1, cooldownMs: 60_000 } });
    const response = await call();
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.equal((await response.json()).error.message, "no");
  });
});

describe("tenants and concurrency", () => {
  /** A provider whose answers wait until they are let go. */
  function gated() {
    const waiting = [];
    let peak = 0;
    const upstream = provider(() => undefined);
    const inner = upstream.fetch;
    upstream.fetch = async (url, init) => {
      await new Promise((resolve, reject) => {
        waiting.push(resolve);
        peak = Math.max(peak, waiting.length);
        init.signal.addEventListener("abort", () => reject(init.signal.reason));
      });
      return inner(url, init);
    };
    const release = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      waiting.shift()?.();
    };
    return { upstream, waiting, release, peak: () => peak };
  }

  it("let only so many calls out, and wake the next when one ends", async () => {
    const { upstream, waiting, release, peak } = gated();
    const { call } = keelOf(upstream, { concurrency: { max: 2 } });
    const calls = Array.from({ length: 7 }, () => call());
    for (let n = 0; n < 7; n += 1) await release();
    const answers = await Promise.all(calls);
    assert.ok(answers.every((response) => response.status === 200));
    assert.equal(peak(), 2);
    assert.equal(waiting.length, 0);
  });

  it("make a tenant's flood wait behind its own limit, nobody else's", async () => {
    const { upstream, waiting, release } = gated();
    const { keel } = keelOf(upstream, { tenants: { noisy: { concurrency: 1 } } });
    const from = (tenant) => keel.with({ tenant }).fetch(OPENAI, { method: "POST", body: '{"model":"gpt-5"}' });
    const flood = Array.from({ length: 5 }, () => from("noisy"));
    const quiet = [from("quiet"), from("other")];
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(waiting.length, 3, "one of the flood, and both others");
    for (let n = 0; n < 7; n += 1) await release();
    assert.equal((await Promise.all([...flood, ...quiet])).length, 7);
  });

  it("give up a place in the queue when the caller does", async () => {
    const { upstream, waiting, release } = gated();
    const { keel, call } = keelOf(upstream, { concurrency: { max: 1 } });
    const first = call();
    const controller = new AbortController();
    const second = call(undefined, undefined, undefined, controller.signal);
    const third = call();
    controller.abort(new Error("enough"));
    await assert.rejects(second, /enough/);
    await release();
    await first;
    await release();
    assert.equal((await third).status, 200);
    assert.equal(waiting.length, 0);
    assert.equal(keel.state().waiting, 0);
  });

  it("refuse who can't be served in time, with a reason and a class of our own", async () => {
    const { upstream } = gated();
    const { call, keel } = keelOf(upstream, { concurrency: { max: 1 }, timeouts: { totalMs: 80 } });
    const first = call().catch((error) => error);
    const second = await call().then(assert.fail, (error) => error);
    assert.ok(second instanceof KeelError);
    assert.equal((await first).class, "timeout");
    assert.equal(keel.state().permits.held, 0);
  });
});
