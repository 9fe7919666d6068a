// Request bodies that are too long to be kept, or that stop coming: what is sent of them, and when a call gives up.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";

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
