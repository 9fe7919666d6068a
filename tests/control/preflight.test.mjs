// `preflight: true` on a pool, and the choice of a pool that can answer in time, through plain keel.fetch.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel, KeelConfigError, KeelError } from "evenkeel";
import { fakeClock, openai, scriptedUpstream } from "evenkeel/testing";

const CHAT = "https://api.openai.com/v1/chat/completions";

/** A provider whose answers are given by hand, so that a test sees what waits. */
function gate() {
  const open = [];
  const fetch = (_url, { headers, signal }) =>
    new Promise((resolve, reject) => {
      const key = new Headers(headers).get("authorization")?.replace("Bearer sk-", "");
      signal.addEventListener("abort", () => reject(signal.reason));
      open.push({ key, answer: resolve, fail: reject });
    });
  return { fetch, open, keys: () => open.map(({ key }) => key) };
}

/** Goes on as soon as something holds; a test that waits for what never does ends by its own time limit. */
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
};
const good = () =>
  Response.json({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }], usage: { completion_tokens: 9 } });
const refused = (status, error, headers = {}) =>
  Response.json({ error: { message: "no", ...error } }, { status, headers });

function rig(pools, options = {}) {
  const upstream = gate();
  const records = [];
  const keel = createKeel({
    fetch: upstream.fetch,
    ledger: (record) => records.push(record),
    retry: { maxAttempts: 1 },
    pools: pools.map(([organisation, preflight = true]) => ({
      provider: "openai",
      organisation,
      keys: [{ id: organisation, value: `sk-${organisation}` }],
      preflight,
    })),
    ...options,
  });
  const call = (init = {}) => keel.fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}', ...init });
  const calls = (n) =>
    Array.from({ length: n }, () =>
      call().then(
        (r) => r,
        (e) => e,
      ),
    );
  return {
    ...upstream,
    keel,
    records,
    call,
    calls,
    preflight: () => keel.state().vendor.map((one) => one.preflight),
    waiting: () => keel.state().waiting,
  };
}

describe("a preflight", () => {
  it("lets one call out, and the others once that one was answered well", async () => {
    const { calls, open, records, preflight, waiting } = rig([["a"]]);
    const run = calls(20);
    await until(() => waiting() === 19);
    assert.equal(open.length, 1);
    assert.deepEqual(preflight(), ["asking"]);
    open[0].answer(good());
    await run[0];
    await until(() => open.length >= 20 && waiting() === 0);
    assert.equal(open.length, 20, "no request is made up for it: twenty calls are twenty requests");
    for (const { answer } of open) answer(good());
    assert.ok((await Promise.all(run)).every((response) => response.status === 200));
    assert.deepEqual(preflight(), ["passed"]);
    assert.ok(records.some((record) => record.kind === "preflight_passed" && record.subject === "openai/a/gpt-5"));
  });

  const refusals = [
    ["a refused key", () => refused(401, { code: "invalid_api_key" }), "auth_error"],
    ["a missing permission", () => refused(403, { type: "permission_error" }), "permission_error"],
    [
      "a used-up quota",
      () => refused(429, { code: "insufficient_quota", type: "insufficient_quota" }),
      "quota_exhausted",
    ],
    ["an unknown model", () => refused(404, { code: "model_not_found" }), "not_found"],
    ["an overload", () => refused(503, { code: "server_is_overloaded" }), "overloaded"],
    ["an outage", () => refused(500, { type: "server_error" }), "server_error"],
    [
      "nobody there",
      () => Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } }),
      "connection_error",
    ],
  ];
  for (const [name, answer, failure] of refusals) {
    it(`that meets ${name} spares the run: the others fail at once with that class, unsent`, async () => {
      const { calls, open, records, preflight, waiting } = rig([["a"]], { transportFailure: "throw" });
      const run = calls(20);
      await until(() => waiting() === 19);
      const said = answer();
      if (said instanceof Response) open[0].answer(said);
      else open[0].fail(said);
      const [, ...others] = await Promise.all(run);
      for (const error of others) {
        assert.ok(error instanceof KeelError, String(error));
        assert.deepEqual([error.class, error.reason, error.attempts], [failure, "preflight_failed", []]);
        assert.ok(error.retryAfterMs > 0);
      }
      assert.equal(open.length, 1);
      assert.deepEqual(preflight(), ["refused"]);
      const notice = records.find((record) => record.kind === "preflight_failed");
      assert.equal(notice.detail.class, failure);
      assert.ok(notice.detail.until_ms > 0);
    });
  }

  it("that is refused sends the others to another organisation", async () => {
    const { calls, open, keys, waiting } = rig([["a"], ["b"]]);
    const run = calls(10);
    await until(() => waiting() === 8);
    assert.deepEqual(keys(), ["a", "b"], "one each");
    open[0].answer(refused(404, { code: "model_not_found" }));
    open[1].answer(good());
    await Promise.all([run[0], run[1]]);
    await until(() => open.length === 10);
    assert.deepEqual(keys(), ["a", "b", ...Array(8).fill("b")]);
    for (const { answer } of open) answer(good());
    await Promise.all(run);
  });

  it("that is given up by its caller is followed by the next call", async () => {
    const { call, calls, open, waiting } = rig([["a"]]);
    const controller = new AbortController();
    const first = call({ signal: controller.signal });
    const others = calls(2);
    await until(() => waiting() === 2);
    controller.abort(new Error("enough"));
    await assert.rejects(first, /enough/);
    await until(() => open.length === 2);
    assert.equal(waiting(), 1, "one more, alone");
    open[1].answer(good());
    await until(() => open.length === 3);
    for (const { answer } of open) answer(good());
    await Promise.all(others);
  });

  it("waits no longer than its deadline", async () => {
    const { call, open, keel } = rig([["a"]]);
    const first = call();
    const hurried = await keel
      .with({ deadlineMs: 30 })
      .fetch(CHAT, { method: "POST", body: '{"model":"gpt-5"}' })
      .then(assert.fail, (error) => error);
    assert.ok(hurried instanceof KeelError);
    assert.deepEqual([hurried.attempts, open.length], [[], 1]);
    open[0].answer(good());
    assert.equal((await first).status, 200);
  });

  it("is off by default", async () => {
    const pools = [{ provider: "openai", organisation: "a", keys: [{ id: "a", value: "sk-a" }] }];
    const { calls, open, preflight } = rig([], { pools });
    const run = calls(5);
    await until(() => open.length === 5);
    assert.deepEqual(preflight(), [null]);
    for (const { answer } of open) answer(good());
    await Promise.all(run);
  });

  it("is a boolean, and else refused with its path", () => {
    for (const preflight of ["yes", 1, null, {}]) {
      assert.throws(
        () => rig([["a", preflight]]),
        (error) => error instanceof KeelConfigError && error.path === "pools[0].preflight",
      );
    }
  });
});

describe("a pool that is too slow for the deadline", () => {
  it("is left for one that can answer in time, and the record says why", async () => {
    const clock = fakeClock({ now: Date.UTC(2026, 10, 30, 8) });
    const records = [];
    const upstream = scriptedUpstream(
      ({ headers }) => ({
        ...openai.chatStream("one two three four five six"),
        delayMs: headers.authorization.includes("slow") ? 9_000 : 300,
        gapMs: 20,
      }),
      { clock },
    );
    const keel = createKeel({
      fetch: upstream.fetch,
      clock,
      seed: 1,
      ledger: (record) => records.push(record),
      pools: ["slow", "fast"].map((organisation) => ({
        provider: "openai",
        organisation,
        keys: [{ id: organisation, value: `sk-${organisation}` }],
      })),
    });
    const call = async (deadlineMs) => {
      const init = { method: "POST", body: '{"model":"gpt-5","stream":true,"max_tokens":10}' };
      const answer = keel.with({ deadlineMs }).fetch(CHAT, init);
      const text = answer.then((response) => response.text());
      text.catch(() => {});
      for (let n = 0; n < 120; n += 1) await clock.advance(100);
      return text;
    };
    for (let n = 0; n < 16; n += 1) await call(60_000);
    records.length = 0;
    await call(4_000);
    await call(4_000);
    const attempts = records.filter((record) => record.type === "attempt");
    assert.deepEqual(
      attempts.map((attempt) => attempt.bucket),
      ["openai/fast/gpt-5", "openai/fast/gpt-5"],
    );
    const { passed_over: told } = attempts.find((attempt) => attempt.passed_over !== null);
    assert.equal(told.bucket, "openai/slow/gpt-5");
    assert.equal(told.reason, "infeasible_before_deadline");
    assert.equal(told.remaining_ms, 4_000);
    assert.ok(told.estimate_ms > 9_000 && told.estimate_ms < 13_000, String(told.estimate_ms));
    assert.ok(told.first_token_ms >= 9_000 && told.first_token_ms < told.estimate_ms, String(told.first_token_ms));
    assert.equal(told.tokens_per_second, null, "these streams tell no usage");
    assert.ok(attempts.every((attempt) => attempt.infeasible === null && attempt.concurrency_limit === null));
    const slow = keel.state().vendor.find((bucket) => bucket.bucket === "openai/slow/gpt-5");
    assert.ok(slow.first_token_ms >= 9_000 && slow.first_token_ms < 12_000, String(slow.first_token_ms));

    records.length = 0;
    await assert.rejects(call(150), { reason: "deadline_exceeded" });
    const { bucket, passed_over, infeasible } = records.find((record) => record.type === "attempt");
    assert.equal(passed_over, null, "there is no better one");
    assert.equal(infeasible.bucket, bucket);
    assert.equal(infeasible.reason, "infeasible_before_deadline");
    assert.equal(infeasible.remaining_ms, 150);
    assert.ok(infeasible.estimate_ms > 150, String(infeasible.estimate_ms));
  });
});
