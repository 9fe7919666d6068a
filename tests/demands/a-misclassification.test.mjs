/** What is an error of the request, of the account or of the connection, and what follows for the retry. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rig, timed } from "../clients/rig.mjs";
import { anthropic, openai } from "../upstream/bodies.mjs";

describe("A3 errors of the caller are terminal", { concurrency: true }, () => {
  for (const [name, step] of /** @type {const} */ ([
    ["400", openai.badRequest()],
    ["401", openai.badKey()],
    [
      "403",
      anthropic.error(403, "permission_error", "Your API key does not have permission to use the specified resource."),
    ],
    ["404", openai.modelNotFound()],
    ["405", { status: 405, body: "Method Not Allowed" }],
    ["413", anthropic.error(413, "request_too_large", "Request exceeds the maximum allowed number of bytes.")],
    [
      "422",
      {
        status: 422,
        json: { detail: [{ loc: ["body", "messages"], msg: "field required", type: "value_error.missing" }] },
      },
    ],
  ])) {
    it(`A3 a ${name} is sent once, and says that it won't be retried`, async (t) => {
      const { chat, upstream, attempts } = await rig(t, () => step);
      const response = await chat();
      assert.equal(response.status, Number(name));
      assert.equal(upstream.seen.length, 1);
      const [attempt] = await attempts();
      assert.deepEqual([attempt.decision, attempt.delivery, attempt.status], ["return", "answered", "failed"]);
    });
  }
});

/** `fetch` that fails like this once, and then answers. */
function failsOnce(/** @type {unknown} */ error) {
  let calls = 0;
  return async () => {
    calls++;
    if (calls === 1) throw error;
    return Response.json(openai.chat("fine").json);
  };
}
const withCause = (/** @type {Error} */ error, /** @type {object} */ cause) => Object.assign(error, { cause });
const coded = (/** @type {string} */ code, message = code) => Object.assign(new Error(message), { code });

describe("A4 the chain of causes says what a transport failure is", { concurrency: true }, () => {
  for (const [name, error, delivery] of /** @type {const} */ ([
    [
      "undici: fetch failed, because ECONNRESET",
      withCause(new TypeError("fetch failed"), coded("ECONNRESET", "read ECONNRESET")),
      "maybe_sent",
    ],
    [
      "undici: fetch failed, because other side closed",
      withCause(new TypeError("fetch failed"), coded("UND_ERR_SOCKET", "other side closed")),
      "maybe_sent",
    ],
    [
      "undici: terminated",
      withCause(new TypeError("terminated"), coded("UND_ERR_BODY_TIMEOUT", "Body Timeout Error")),
      "maybe_sent",
    ],
    ["undici: refused", withCause(new TypeError("fetch failed"), coded("ECONNREFUSED")), "not_sent"],
    ["undici: no such host for the moment", withCause(new TypeError("fetch failed"), coded("EAI_AGAIN")), "not_sent"],
    ["undici: connect timeout", withCause(new TypeError("fetch failed"), coded("UND_ERR_CONNECT_TIMEOUT")), "not_sent"],
    [
      "undici: several addresses, all refused",
      withCause(new TypeError("fetch failed"), new AggregateError([coded("ECONNREFUSED"), coded("ECONNREFUSED")])),
      "not_sent",
    ],
    ["node-fetch: premature close", coded("ERR_STREAM_PREMATURE_CLOSE", "Premature close"), "maybe_sent"],
    ["workerd", new Error("Network connection lost."), "maybe_sent"],
    [
      "Bun: refused",
      coded("ConnectionRefused", "Unable to connect. Is the computer able to access the url?"),
      "not_sent",
    ],
    [
      "three causes deep",
      withCause(new Error("a"), withCause(new Error("b"), withCause(new Error("c"), coded("EPIPE")))),
      "maybe_sent",
    ],
  ])) {
    it(`A4 ${name}`, async (t) => {
      const { chat, attempts } = await rig(t, [], { fetch: failsOnce(error) });
      assert.equal((await chat()).status, 200);
      const [first, second] = await attempts();
      assert.ok(["connection_error", "timeout"].includes(first.error_class), first.error_class);
      assert.deepEqual([first.delivery, first.decision, second.status], [delivery, "retry", "succeeded"]);
    });
  }

  it("A4 a cause that is its own cause comes to an end", async (t) => {
    const error = new TypeError("fetch failed");
    error.cause = error;
    const { chat } = await rig(t, [], { fetch: failsOnce(error) });
    const { ms } = await timed(() => chat());
    assert.ok(ms < 2000, `${ms} ms`);
  });

  it("A4 real sockets: reset and closed before the head, and in the body", async (t) => {
    const troubles = [
      { resetBeforeHead: true },
      { endBeforeHead: true },
      { ...openai.chat("x"), resetAtByte: 30 },
      { ...openai.chat("x"), endAtByte: 30 },
    ];
    for (const trouble of troubles) {
      const { chat, upstream, attempts } = await rig(t, [trouble, openai.chat("fine")]);
      assert.equal((await (await chat()).json()).choices[0].message.content, "fine");
      assert.equal(upstream.seen.length, 2);
      const [first] = await attempts();
      assert.ok(["connection_error", "stream_interrupted"].includes(first.error_class), first.error_class);
    }
  });
});

describe("A8 a fault of the caller passes through and harms nobody", () => {
  it("A8 a 400 comes back as it was, byte for byte", async (t) => {
    const body =
      '{"error":{"message":"Invalid image: 8192 × 8192 pixels","type":"invalid_request_error","param":"image","code":"invalid_image"} }\n';
    const { chat, attempts } = await rig(t, [
      {
        status: 400,
        statusText: "Bad Request",
        headers: { "content-type": "application/json", "x-request-id": "req_9" },
        body,
      },
    ]);
    const response = await chat();
    assert.deepEqual(
      [response.status, response.statusText, response.headers.get("x-request-id")],
      [400, "Bad Request", "req_9"],
    );
    assert.equal(await response.text(), body);
    assert.equal((await attempts())[0].error_class, "bad_request");
  });

  it("A8 a hundred of them open no breaker", async (t) => {
    const { chat, upstream } = await rig(t, (/** @type {any} */ request) =>
      request.n <= 100 ? openai.badRequest() : openai.chat("fine"),
    );
    for (let i = 0; i < 100; i++) assert.equal((await chat()).status, 400);
    assert.equal((await chat()).status, 200);
    assert.equal(upstream.seen.length, 101);
  });
});
