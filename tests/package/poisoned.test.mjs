// A trap in the core, which poisons the instance for every call in it. The package is the one in build/pkg-trap, whose
// core traps when it is asked to (`npm run build -- --with-trap`).

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";

const dist = new URL("../../build/pkg-trap/dist/", import.meta.url);
const { createKeel, KeelError } = await import(new URL("entry.inline.js", dist).href);
const { anthropic, fakeClock, openai, scriptedUpstream } = await import(new URL("testing.js", dist).href);
const { Core, coreGeneration } = await import(new URL("inside.js", dist).href);

const url = "https://api.openai.com/v1/chat/completions";
const soon = (promise, what = "it") => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} hangs`)), 3_000);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

const undo = [];
afterEach(() => {
  for (const back of undo.splice(0)) back();
});

/** Makes the next call of a method of any core trap. */
function trapIn(method) {
  const own = Object.getOwnPropertyDescriptor(Core.prototype, method);
  const back = () => Object.defineProperty(Core.prototype, method, own);
  undo.push(back);
  Object.defineProperty(Core.prototype, method, {
    ...own,
    value() {
      back();
      this.trap();
    },
  });
}

/** Has the host refuse new instances until the test ends, or the function it gives is called. */
function refuseInstances() {
  const { Instance } = WebAssembly;
  const back = () => {
    WebAssembly.Instance = Instance;
  };
  undo.push(back);
  WebAssembly.Instance = class {
    constructor() {
      throw new RangeError("WebAssembly.Instance(): Out of memory: Cannot allocate Wasm memory for new instance");
    }
  };
  return back;
}

function rig(script, options = {}) {
  const upstream = scriptedUpstream(script);
  const records = [];
  const keel = createKeel({
    fetch: upstream.fetch,
    seed: 1,
    ledger: (record) => void records.push(record),
    ...options,
  });
  const chat = (body = "{}", init = {}) => keel.fetch(url, { method: "POST", body, ...init });
  return {
    upstream,
    keel,
    chat,
    records,
    notices: () =>
      records
        .filter((record) => record.type === "notice")
        .map((record) => record.kind)
        .filter((kind) => kind.startsWith("core")),
  };
}

async function failedByCore(promise) {
  const error = await soon(promise).then(
    () => assert.fail("it was served"),
    (thrown) => thrown,
  );
  assert.ok(error instanceof KeelError, String(error));
  assert.equal(error.reason, "core_failed");
  assert.match(error.message, /own core failed.*may have been sent/);
  return error;
}

/** One record for each request that was sent, and one for each logical request; gives those that are lost. */
function wholeLedger(records, sent) {
  const attempts = records.filter((record) => record.type === "attempt");
  const calls = records.filter((record) => record.type === "call");
  const unique = (ids) => assert.equal(new Set(ids).size, ids.length, `twice: ${ids}`);
  unique(attempts.map((record) => record.attempt_id));
  unique(calls.map((record) => record.logical_request_id));
  assert.equal(attempts.length, sent, "attempts");
  for (const { logical_request_id: id, attempts: count } of calls) {
    const own = attempts.filter((record) => record.logical_request_id === id);
    assert.deepEqual(
      own.map((record) => record.attempt_no),
      Array.from({ length: count }, (_, at) => at + 1),
    );
  }
  const lost = (record) => record.status === "lost";
  return { attempts: attempts.filter(lost), calls: calls.filter(lost), all: calls };
}

describe("I7 a trap in the core", () => {
  const chunks = openai.chatStream("one two").chunks;
  const stream = { ...openai.chatStream("one two"), chunks };
  /** @type {[string, object[], object?][]} */
  const crossings = [
    ["begin", []],
    ["head", [openai.chat("hi")]],
    ["body", [openai.chat("hi")]],
    ["transport", [{ fail: "refused" }]],
    ["timer", [openai.rateLimited(1)], { retry: { maxWaitMs: 2_000 } }],
    ["takeRecords", [openai.chat("hi")]],
    ["ending", [openai.badRequest()]],
    ["chunk", [stream]],
    ["streamEnd", [{ ...stream, chunks: chunks.slice(0, 2) }]],
    ["cancelled", [{ hang: true }]],
  ];
  for (const [method, script, options] of crossings) {
    test(`I7 in ${method} fails the call with an error that says so, and the next one is served`, async () => {
      const { chat, notices, keel, records, upstream } = rig(
        (seen) => script[seen.n - 1] ?? openai.chat("later"),
        options,
      );
      trapIn(method);
      const body = JSON.stringify({ model: "gpt-5", stream: script[0]?.chunks !== undefined });
      const controller = new AbortController();
      if (method === "cancelled") setTimeout(() => controller.abort(), 20);
      const error = await failedByCore(chat(body, { signal: controller.signal }).then((response) => response.text()));
      const response = await soon(chat());
      assert.equal((await response.json()).choices[0].message.content, "later");
      assert.deepEqual(notices(), ["core_restarted"]);
      await soon(keel.flush());
      const { calls, all } = wholeLedger(records, upstream.seen.length);
      assert.equal(all.length, 2);
      assert.ok(all.some((record) => record.logical_request_id === error.logicalRequestId));
      assert.equal(calls.length, method === "ending" ? 0 : 1, "what had its records keeps them");
    });
  }

  test("J2 the records of what was lost say whose it was, what was asked of whom, and how long it took", async () => {
    const clock = fakeClock();
    const upstream = scriptedUpstream([{ ...openai.chat("hi"), delayMs: 250 }], { clock });
    const records = [];
    const keel = createKeel({ fetch: upstream.fetch, clock, ledger: (record) => void records.push(record) });
    const own = keel.with({ tenant: "acme", operation: "sum", logicalRequestId: "own-1" });
    const body = JSON.stringify({ model: "gpt-5", max_completion_tokens: 7 });
    trapIn("head");
    const failing = clock.run(() => own.fetch(url, { method: "POST", body }).catch((error) => error));
    assert.equal((await failing).logicalRequestId, "own-1");
    const { attempts, calls } = wholeLedger(records, 1);
    const shared = {
      schema: 1,
      logical_request_id: "own-1",
      user_or_tenant_id: "acme",
      operation_type: "sum",
      provider: "openai",
      protocol: "openai.chat",
      model: "gpt-5",
      rung: "primary",
      input_token_estimate: Math.ceil(body.length / 4),
      max_output_tokens: 7,
      status: "lost",
      error_class: "unknown",
      reason: "core_failed",
      latency_ms: 250,
      queue_ms: 0,
    };
    const subset = (record) => Object.fromEntries(Object.keys(shared).map((name) => [name, record[name]]));
    assert.deepEqual(subset(attempts[0]), shared);
    assert.deepEqual(subset(calls[0]), shared);
    assert.match(attempts[0].attempt_id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.match(attempts[0].prompt_hash, /^[0-9a-f]{32}$/);
    assert.equal(attempts[0].delivery, "answered");
    assert.equal(attempts[0].http_status, 200);
    assert.equal(attempts[0].decision, "fail");
    const { bytes, malformed_events, longest_gap_ms, passed_over } = attempts[0];
    assert.deepEqual([bytes, malformed_events, longest_gap_ms, passed_over], [0, 0, null, null]);
    assert.equal(Date.parse(attempts[0].finished_at) - Date.parse(attempts[0].started_at), 250);
    assert.deepEqual([calls[0].attempts, calls[0].revision, calls[0].fallback_used], [1, 1, false]);
    const whole = rig(() => openai.chat("hi"));
    await whole.chat();
    const names = (list, type) => Object.keys(list.find((record) => record.type === type)).sort();
    for (const type of ["attempt", "call"]) assert.deepEqual(names(records, type), names(whole.records, type));
  });

  test("J2 an attempt that had its record before the core died has no second one", async () => {
    const { chat, records, upstream } = rig([openai.overloaded(), openai.overloaded()], {
      retry: { baseMs: 20, capMs: 20 },
    });
    const failing = failedByCore(chat());
    while (records.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    trapIn("timer");
    const error = await failing;
    const { attempts, calls } = wholeLedger(records, upstream.seen.length);
    assert.deepEqual([attempts.length, calls.length], [0, 1]);
    assert.equal(calls[0].logical_request_id, error.logicalRequestId);
  });

  test("J2 a call that was never sent is lost without an attempt, under an id of its own", async () => {
    const { chat, records } = rig([openai.chat("hi")]);
    trapIn("begin");
    const error = await failedByCore(chat());
    const { calls } = wholeLedger(records, 0);
    assert.match(error.logicalRequestId, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.equal(calls[0].logical_request_id, error.logicalRequestId);
    assert.deepEqual([calls[0].provider, calls[0].attempts, calls[0].model], ["api.openai.com", 0, null]);
  });

  test("J2 a lost record has no part of a password, whatever stands in it", async () => {
    const { keel, records } = rig([]);
    trapIn("begin");
    // Its body doesn't come in time, so that no host has taken the address apart.
    const init = { method: "POST", body: new ReadableStream({}), duplex: "half" };
    const call = keel.with({ deadlineMs: 5 }).fetch("https://user:pa@ss@own.example/v1/chat/completions", init);
    await failedByCore(call);
    const { calls } = wholeLedger(records, 0);
    assert.equal(calls[0].provider, "own.example");
  });

  for (const method of ["chunk", "wakeIn", "streamEnd", "takeRecords"]) {
    test(`I7 in ${method} in the middle of a stream that was given on ends it with the error`, async () => {
      const { chat, records } = rig([{ ...stream, gapMs: 15 }, openai.chat("later")]);
      const response = await chat(JSON.stringify({ model: "gpt-5", stream: true }));
      const reader = response.body.getReader();
      await reader.read();
      trapIn(method);
      await failedByCore(
        (async () => {
          while (!(await reader.read()).done);
        })(),
      );
      const { attempts, calls } = wholeLedger(records, 1);
      assert.deepEqual([attempts.length, calls.length], [1, 1]);
      assert.equal((await soon(chat())).status, 200);
    });
  }

  test("I7 fails the calls in flight and no later one, and restarts the core once", async () => {
    const { chat, notices, records, upstream } = rig((seen) =>
      seen.body.includes("old") ? { ...openai.chat("old"), delayMs: 60 } : openai.chat("new"),
    );
    const before = coreGeneration();
    const old = Array.from({ length: 30 }, () => chat('{"old":1}'));
    await new Promise((resolve) => setTimeout(resolve, 10));
    trapIn("head");
    await failedByCore(chat('{"trap":1}'));
    const young = Array.from({ length: 30 }, () => chat('{"new":1}'));
    for (const call of old) await failedByCore(call);
    for (const call of young) assert.equal((await soon(call)).status, 200);
    assert.equal((await soon(chat())).status, 200);
    const { attempts, calls } = wholeLedger(records, upstream.seen.length);
    assert.deepEqual([attempts.length, calls.length], [31, 31]);
    assert.equal(coreGeneration() - before, 1);
    assert.deepEqual(notices(), ["core_restarted"]);
  });

  test("I7 wakes those who wait for their turn or for a backoff, in every keel: they would wait for long", async () => {
    const waiting = rig((seen) => (seen.n === 1 ? { hang: true } : openai.chat("hi")), {
      concurrency: { max: 1, adaptive: false },
    });
    const backoff = rig(() => openai.rateLimited(50));
    const other = rig(() => openai.chat("hi"));
    const holder = new AbortController();
    const held = waiting.chat("{}", { signal: holder.signal });
    const calls = [waiting.chat(), waiting.chat(), backoff.chat()];
    await new Promise((resolve) => setTimeout(resolve, 30));
    trapIn("begin");
    await failedByCore(other.chat());
    for (const call of calls) await failedByCore(call);
    assert.equal((await soon(waiting.chat())).status, 200, "the dead core's permits are nobody's");
    holder.abort();
    await assert.rejects(soon(held));
  });

  test("I7 takes nothing from a keel that shares the instance but what was in flight", async () => {
    const one = rig(() => openai.chat("one"));
    const two = rig(() => openai.chat("two"));
    assert.equal((await two.chat()).status, 200);
    trapIn("body");
    await failedByCore(one.chat());
    assert.equal((await soon(two.chat())).status, 200);
    assert.deepEqual([one.notices(), two.notices()], [["core_restarted"], ["core_restarted"]]);
  });

  test("I7 leaves what the keel had learned: a bucket that cools is still left alone", async () => {
    const clock = fakeClock();
    const upstream = scriptedUpstream([openai.rateLimited(600), anthropic.message("hi")], { clock });
    const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });
    const body = JSON.stringify({ model: "gpt-5" });
    const chat = () => keel.fetch(url, { method: "POST", body });
    assert.equal((await clock.run(chat)).status, 429);
    trapIn("begin");
    await failedByCore(chat());
    const error = await clock.run(chat).then(assert.fail, (thrown) => thrown);
    assert.equal(error.reason, "bucket_cooling");
    assert.equal(upstream.seen.length, 1, "nothing was sent");
    assert.notEqual(keel.state().vendor.find((bucket) => bucket.bucket === "openai/gpt-5").cooling_until, null);
  });

  test("I7 does not make a seeded keel give its ids twice", async () => {
    const clock = fakeClock();
    const ids = [];
    const upstream = scriptedUpstream(() => openai.chat("hi"), { clock });
    const keel = createKeel({
      fetch: upstream.fetch,
      clock,
      seed: 1,
      ledger: (record) => void ids.push(record.attempt_id),
    });
    const chat = () => keel.fetch(url, { method: "POST", body: "{}" });
    await clock.run(chat);
    trapIn("begin");
    await failedByCore(chat());
    await clock.run(chat);
    const attempts = ids.filter((id) => id !== undefined);
    assert.equal(attempts.length, 2);
    assert.notEqual(attempts[0], attempts[1]);
  });

  test("I7 a sink that calls the keel from the notice is served by the fresh core", async () => {
    const inner = [];
    const upstream = scriptedUpstream(() => openai.chat("hi"));
    const keel = createKeel({
      fetch: upstream.fetch,
      ledger: (record) => {
        if (record.kind === "core_restarted") inner.push(keel.fetch(url, { method: "POST", body: "{}" }));
      },
    });
    trapIn("head");
    await failedByCore(keel.fetch(url, { method: "POST", body: "{}" }));
    assert.equal(inner.length, 1);
    assert.equal((await soon(inner[0])).status, 200);
  });
});

describe("I7 where no instance can be had after a trap", () => {
  test('I7 onCoreFailure "fail" (the default) says so, and serves again as soon as the host gives one', async () => {
    const { chat, upstream } = rig(() => openai.chat("hi"));
    const allow = refuseInstances();
    trapIn("begin");
    await failedByCore(chat());
    await assert.rejects(soon(chat()), /no new instance.*Out of memory.*onCoreFailure/);
    assert.equal(upstream.seen.length, 0);
    allow();
    assert.equal((await soon(chat())).status, 200);
  });

  test('I7 onCoreFailure "pass-through" sends requests by plain fetch, as they are, and says so once', async () => {
    const { chat, upstream, notices } = rig(() => openai.overloaded(), { onCoreFailure: "pass-through" });
    const allow = refuseInstances();
    trapIn("begin");
    await failedByCore(chat());
    const stream = new Blob(["from a stream"]).stream();
    assert.equal((await soon(chat("one"))).status, 503);
    assert.equal((await soon(chat(stream, { duplex: "half" }))).headers.get("x-evenkeel-attempts"), null);
    assert.deepEqual(
      upstream.seen.map((seen) => seen.body),
      ["one", "from a stream"],
    );
    assert.deepEqual(notices(), ["core_restarted", "core_missing"]);
    allow();
    assert.equal((await soon(chat())).headers.get("x-evenkeel-attempts") !== null, true);
  });
});
