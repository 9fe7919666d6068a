// Responses as the caller gets them, whatever ids and statuses there are.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createKeel } from "evenkeel";

const OPENAI = "https://api.openai.com/v1/chat/completions";
const POST = { method: "POST", body: '{"model":"gpt-5"}' };
const ONCE = { retry: { maxAttempts: 1 }, breaker: false };

describe("what a header can't hold", () => {
  const context = { logicalRequestId: "größe-日本-\ud800" };
  const encoded = "gr%C3%B6%C3%9Fe-%E6%97%A5%E6%9C%AC-%EF%BF%BD";

  it("is percent-encoded on a failure that the upstream answered", async () => {
    const keel = createKeel({
      ...ONCE,
      fetch: async () => new Response("{}", { status: 503 }),
      classify: (_signal, builtIn) => ({ ...builtIn, retryable: false, reason: "überlastet" }),
    });
    const response = await keel.with(context).fetch(OPENAI, POST);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-evenkeel-logical-request-id"), encoded);
    assert.equal(response.headers.get("x-evenkeel-reason"), "%C3%BCberlastet");
  });

  it("is percent-encoded on a failure that has no answer", async () => {
    const fetch = () => Promise.reject(new TypeError("fetch failed"));
    const keel = createKeel({ ...ONCE, fetch, transportFailure: "response" });
    const response = await keel.with(context).fetch(OPENAI, POST);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-evenkeel-logical-request-id"), encoded);
  });
});

describe("a status that no Response can be made with", () => {
  /** What a host's own `fetch` gives where such a status came by a real socket. */
  const odd = (status) =>
    Object.defineProperties(new Response("what", { headers: { "x-own": "1" } }), {
      status: { value: status },
      statusText: { value: "Odd" },
      ok: { value: false },
    });

  for (const status of [600, 799, 999]) {
    it(`such as ${status} is given on with its body`, async () => {
      const keel = createKeel({ ...ONCE, fetch: async () => odd(status) });
      const response = await keel.fetch(OPENAI, POST);
      assert.deepEqual([response.status, response.statusText, response.ok], [status, "Odd", false]);
      assert.equal(response.headers.get("x-own"), "1");
      assert.equal(response.headers.get("x-evenkeel-attempts"), "1");
      assert.equal(await response.text(), "what");
    });
  }
});
