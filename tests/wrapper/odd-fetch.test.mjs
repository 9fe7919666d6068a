// What a `fetch` of the user's own, a wrapper or a test double, may do: whatever it is, the call is classified and ends.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel, KeelError } from "evenkeel";

const U = "https://api.openai.com/v1/chat/completions";
const STREAM = { "content-type": "text/event-stream" };
const ok = () => Response.json({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }] });
const post = (more = {}) => ({ method: "POST", body: '{"model":"gpt-5"}', ...more });
const boom = () => {
  throw new Error("boom");
};

function keelOf(fetch, options = {}) {
  const records = [];
  const retry = { maxAttempts: 2, baseMs: 1, capMs: 2 };
  const keel = createKeel({ fetch, ledger: (r) => records.push(r), retry, breaker: false, ...options });
  const statuses = () => records.filter(({ type }) => type !== "notice").map(({ type, status }) => `${type} ${status}`);
  return { keel, records, statuses };
}

describe("a fetch that gives no response", () => {
  const GIVEN = {
    "nothing at once": () => undefined,
    nothing: async () => undefined,
    null: async () => null,
    text: async () => "text",
    // biome-ignore lint/suspicious/noThenProperty: it is what is tested
    "a thenable that throws": () => ({ then: boom }),
    "a response whose status throws": async () => Object.defineProperty({}, "status", { get: boom }),
    "a response whose body throws": async () => Object.defineProperty({ status: 200 }, "body", { get: boom }),
    "headers that can't be read": async () => ({
      status: 200,
      headers: { has: () => true, [Symbol.iterator]: boom },
      body: null,
    }),
  };
  for (let number = 0; number < 128; number += 1) GIVEN[`the number ${number}`] = async () => number;

  it("is a failure with its records, never an answer, and gives its permit back", async () => {
    for (const [what, fetch] of Object.entries(GIVEN)) {
      const { keel, statuses } = keelOf(fetch);
      const error = await keel.fetch(U, post()).catch((thrown) => thrown);
      assert.ok(error instanceof KeelError, `${what}: ${error}`);
      assert.deepEqual(statuses(), ["attempt failed", "call failed"], what);
      assert.deepEqual([keel.state().permits.held, keel.state().waiting], [0, 0], what);
    }
  });

  it("is asked once where it gives a thenable that begins when it is listened to", async () => {
    let begun = 0;
    const { keel } = keelOf(() => ({
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      then(resolve) {
        begun += 1;
        resolve(ok());
      },
    }));
    assert.equal((await keel.fetch(U, post())).status, 200);
    assert.equal(begun, 1);
  });
});

describe("a fetch that is given its init", () => {
  it("may put a signal of its own into it, take it out, or freeze it", async () => {
    const own = new AbortController().signal;
    const ways = [
      (init) => {
        init.signal = own;
        assert.equal(init.signal, own);
        assert.equal({ ...init }.signal, own);
      },
      (init) => delete init.signal,
      (init) => Object.freeze(init),
    ];
    for (const way of ways) {
      const { keel } = keelOf(async (_, init) => {
        way(init);
        return ok();
      });
      assert.equal((await keel.fetch(U, post())).status, 200);
    }
  });
});

describe("an answer that comes after the call has ended", () => {
  it("harms nobody, whatever it is", async () => {
    const late = [
      { body: { locked: false } },
      { status: 200, body: { async *[Symbol.asyncIterator]() {} } },
      Object.defineProperty({}, "body", { get: boom }),
      undefined,
      ok(),
    ];
    const unhandled = [];
    const see = (error) => unhandled.push(error);
    process.on("unhandledRejection", see);
    try {
      for (const answer of late) {
        let give;
        const { keel } = keelOf(() => new Promise((resolve) => (give = resolve)));
        const gone = new AbortController();
        const call = keel.fetch(U, post({ signal: gone.signal }));
        gone.abort(new Error("gone"));
        await assert.rejects(call, /gone/);
        give(answer);
        await new Promise(setImmediate);
      }
      assert.deepEqual(unhandled, []);
    } finally {
      process.off("unhandledRejection", see);
    }
  });
});

describe("what looks like a trap of the core", () => {
  const LIKE = ["stale object", "null pointer passed to rust", "recursive use of an object"];
  const runtime = (message) => Object.assign(new Error(message), { name: "RuntimeError" });

  it("restarts nothing where it stands in the name of a model", async () => {
    for (const model of LIKE) {
      const { keel, records } = keelOf(() => Promise.reject(new TypeError("fetch failed")));
      const error = await keel.fetch(U, post({ body: JSON.stringify({ model }) })).catch((thrown) => thrown);
      assert.equal(error.class, "connection_error");
      assert.deepEqual(
        records.filter(({ kind }) => kind === "core_restarted"),
        [],
      );
    }
  });

  it("restarts nothing where the caller aborts with it, and is what the caller gets", async () => {
    for (const reason of LIKE.map((message) => new Error(message)).concat(runtime("unreachable"))) {
      const { keel, statuses, records } = keelOf(() => new Promise(() => {}));
      const gone = new AbortController();
      const call = keel.fetch(U, post({ signal: gone.signal }));
      gone.abort(reason);
      assert.equal(await call.catch((thrown) => thrown), reason);
      assert.deepEqual(statuses(), ["attempt cancelled", "call cancelled"]);
      assert.equal(records.length, 2);
    }
  });

  it("restarts nothing where an upstream's stream breaks with it", async () => {
    const broken = () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'));
        },
        pull: (controller) => controller.error(runtime("unreachable")),
      });
    const { keel, records } = keelOf(async () => new Response(broken(), { headers: STREAM }));
    const response = await keel.fetch(U, post({ body: '{"model":"stale object","stream":true}' }));
    await assert.rejects(response.text(), { class: "stream_interrupted" });
    assert.deepEqual(
      records.filter(({ kind }) => kind === "core_restarted"),
      [],
    );
  });
});
