// Request bodies that are too long to be kept, or that stop coming: what is sent of them, and when a call gives up.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { createKeel, KeelError } from "evenkeel";
import { fakeClock } from "evenkeel/testing";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const BIG = "x".repeat(5_000);

const streamOf = (text) =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });

/** A keel that keeps a kilobyte, and what its `fetch` was asked to send. */
function recorded(options = {}) {
  const sent = [];
  const keel = createKeel({
    body: { maxBufferedBytes: 1_024 },
    fetch: async (input, init) => {
      const request = new Request(input, init);
      sent.push({
        method: request.method,
        own: request.headers.get("x-own"),
        key: request.headers.get("idempotency-key"),
        body: await request.text(),
      });
      return Response.json({});
    },
    ...options,
  });
  return { keel, sent };
}

describe("a body that is too long to be kept", () => {
  const headers = { "x-own": "1" };

  it("of a Request goes out with its method and its headers", async () => {
    const { keel, sent } = recorded();
    const response = await keel.fetch(new Request(OPENAI, { method: "PUT", headers, body: BIG }));
    assert.equal(response.status, 200);
    assert.deepEqual(sent, [{ method: "PUT", own: "1", key: null, body: BIG }]);
  });

  it("that takes the place of a Request's goes out with the method and the headers of the Request", async () => {
    const { keel, sent } = recorded();
    const request = new Request(OPENAI, { method: "PUT", headers, body: "small" });
    await keel.with({ idempotencyKey: "k-1" }).fetch(request, { body: streamOf(BIG), duplex: "half" });
    assert.deepEqual(sent, [{ method: "PUT", own: "1", key: "k-1", body: BIG }]);
  });
});

describe("a body that its owner changes after the call", () => {
  const bytes = (text) => new TextEncoder().encode(text);
  const before = '{"model":"gpt-5","n":1}';
  const after = '{"model":"gpt-5","n":2}';
  /** A buffer with more in it than the body, which is taken out of its middle. */
  function within(Buffer = ArrayBuffer) {
    const buffer = new Buffer(before.length + 8);
    new Uint8Array(buffer).set(bytes(before), 4);
    return buffer;
  }
  /** @type {[string, () => [BodyInit, () => void]][]} */
  const kinds = [
    [
      "a Uint8Array",
      () => {
        const body = bytes(before);
        return [body, () => body.set(bytes(after))];
      },
    ],
    [
      "a Buffer",
      () => {
        const body = Buffer.from(before);
        return [body, () => void body.fill(0)];
      },
    ],
    [
      "an ArrayBuffer",
      () => {
        const body = bytes(before).buffer;
        return [body, () => new Uint8Array(body).set(bytes(after))];
      },
    ],
    [
      "an ArrayBuffer that is given away",
      () => {
        const body = bytes(before).buffer;
        return [body, () => void structuredClone(body, { transfer: [body] })];
      },
    ],
    [
      "a view of a part of a buffer",
      () => {
        const buffer = within();
        return [new DataView(buffer, 4, before.length), () => void new Uint8Array(buffer).fill(32)];
      },
    ],
    [
      "a view of shared memory",
      () => {
        const buffer = within(SharedArrayBuffer);
        return [new Uint8Array(buffer, 4, before.length), () => void new Uint8Array(buffer).fill(32)];
      },
    ],
    ["a Blob", () => [new Blob([before]), () => {}]],
    [
      "a member of init",
      () => {
        const init = { body: before };
        return [init, () => void Object.assign(init, { body: after })];
      },
    ],
  ];

  for (const [name, make] of kinds) {
    it(`${name} is sent again as it was when it was given`, async () => {
      const sent = [];
      const [given, change] = make();
      const keel = createKeel({
        retry: { baseMs: 1, capMs: 1 },
        fetch: async (input, init) => {
          sent.push(await new Request(input, init).text());
          return new Response("{}", { status: sent.length === 1 ? 503 : 200 });
        },
      });
      const init = given?.body === undefined ? { body: given } : given;
      init.method = "POST";
      const answered = keel.fetch(OPENAI, init);
      change();
      assert.equal((await answered).status, 200);
      assert.deepEqual(sent, [before, before]);
    });
  }

  it("a form, or the parameters of one, is sent again as it was", async () => {
    for (const Form of [FormData, URLSearchParams]) {
      const sent = [];
      const keel = createKeel({
        retry: { baseMs: 1, capMs: 1 },
        fetch: async (input, init) => {
          const form = await new Request(input, init).formData();
          const file = form.get("file");
          sent.push([
            form.get("model"),
            typeof file === "string" ? file : [file?.name, file?.type, await file?.text()],
          ]);
          return new Response("{}", { status: sent.length === 1 ? 503 : 200 });
        },
      });
      const body = new Form();
      body.append("model", "whisper-1");
      const file = Form === FormData ? new File(["abc"], "a.wav", { type: "audio/wav" }) : "abc";
      body.append("file", file);
      const answered = keel.fetch("https://api.openai.com/v1/audio/transcriptions", { method: "POST", body });
      body.set("model", "other");
      body.delete("file");
      assert.equal((await answered).status, 200);
      const expected = ["whisper-1", Form === FormData ? ["a.wav", "audio/wav", "abc"] : "abc"];
      assert.deepEqual(sent, [expected, expected]);
    }
  });
});

describe("a body that stops coming", () => {
  /** A stream that gives one chunk and no more, and what it was cancelled with. */
  function stalled() {
    const cancelled = [];
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
      cancel: (reason) => void cancelled.push(reason),
    });
    return { body, cancelled };
  }
  const forms = [
    ["in init", (body, signal) => [OPENAI, { method: "POST", body, duplex: "half", signal }]],
    ["of a Request", (body, signal) => [new Request(OPENAI, { method: "POST", body, duplex: "half", signal })]],
    ["over a Request's", (body, signal) => [new Request(OPENAI, { method: "POST", signal }), { body, duplex: "half" }]],
  ];
  for (const [name, form] of forms) {
    it(`${name} is given up when the caller aborts, with the caller's reason`, async () => {
      const records = [];
      const clock = fakeClock();
      const { keel, sent } = recorded({ clock, ledger: (record) => void records.push(record) });
      const { body, cancelled } = stalled();
      const controller = new AbortController();
      const reason = new Error("no longer wanted");
      const rejected = assert.rejects(keel.fetch(...form(body, controller.signal)), (error) => error === reason);
      await clock.advance(10);
      controller.abort(reason);
      await rejected;
      assert.deepEqual(cancelled, [reason]);
      assert.deepEqual(sent, []);
      assert.equal(records.at(-1).type, "call");
      assert.equal(records.at(-1).status, "cancelled");
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    });
  }

  it("is given up when the signal of the context aborts", async () => {
    const { keel } = recorded();
    const { body } = stalled();
    const init = { method: "POST", body, duplex: "half" };
    const signal = AbortSignal.abort(new Error("over"));
    await assert.rejects(keel.with({ signal }).fetch(OPENAI, init), { message: "over" });
  });

  it("is given up at the deadline of the call, of its budget and of the keel, whichever is first", async () => {
    for (const [totalMs, deadlineMs, budgetMs] of [
      [100, 5_000, 5_000],
      [5_000, 100, 5_000],
      [5_000, 5_000, 100],
    ]) {
      const clock = fakeClock();
      const { keel, sent } = recorded({ clock, timeouts: { totalMs } });
      const { body, cancelled } = stalled();
      const budget = keel.budget({ totalMs: budgetMs });
      const error = await clock.run(() =>
        keel
          .with({ deadlineMs, budget })
          .fetch(OPENAI, { method: "POST", body, duplex: "half" })
          .then(assert.fail, (thrown) => thrown),
      );
      assert.ok(error instanceof KeelError, String(error));
      assert.deepEqual([error.class, error.reason, error.attempts], ["timeout", "deadline_exceeded", []]);
      assert.equal(clock.now() - budget.startedAt, 100);
      assert.equal(cancelled.length, 1);
      assert.deepEqual(sent, []);
      assert.equal(clock.pending, 0);
    }
  });

  it("that comes late leaves the call only the rest of its time", async () => {
    const clock = fakeClock();
    const keel = createKeel({ clock, fetch: () => new Promise(() => {}) });
    async function* slow() {
      await clock.sleep(400);
      yield "{}";
    }
    const startedAt = clock.now();
    const init = { method: "POST", body: slow(), duplex: "half" };
    await clock.run(() => assert.rejects(keel.with({ deadlineMs: 2_000 }).fetch(OPENAI, init), KeelError));
    assert.equal(clock.now() - startedAt, 2_000);
  });

  it("of a stream of Node's is destroyed", async () => {
    const { keel } = recorded();
    const body = new Readable({ read() {} });
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("over")), 5);
    const init = { method: "POST", body, duplex: "half", signal: controller.signal };
    await assert.rejects(keel.fetch(OPENAI, init), { message: "over" });
    assert.equal(body.destroyed, true);
  });
});

describe("a counter of tokens that makes a call itself", () => {
  it("leaves each call its own body, one that crosses in parts too", async () => {
    const models = [];
    let asked = false;
    let inner;
    const keel = createKeel({
      fetch: async () => Response.json({}),
      ledger: (record) => void (record.type === "call" && models.push(record.model)),
      estimateTokens() {
        if (!asked) {
          asked = true;
          inner = keel.fetch(OPENAI, { method: "POST", body: '{"model":"inner"}' });
        }
        return 1;
      },
    });
    const long = JSON.stringify({ model: "outer", messages: [{ role: "user", content: "x".repeat(300_000) }] });
    await keel.fetch(OPENAI, { method: "POST", body: long });
    await inner;
    await keel.flush();
    assert.deepEqual(models.sort(), ["inner", "outer"]);
  });
});
