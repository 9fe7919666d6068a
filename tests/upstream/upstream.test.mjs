import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, describe, it } from "node:test";
import { anthropic, bytesOf, cohere, gemini, ollama, openai } from "./bodies.mjs";
import { refusedUrl, startUpstream } from "./upstream.mjs";

/** @type {import("./upstream.mjs").Upstream[]} */
const started = [];
async function upstreamOf(/** @type {any} */ script, /** @type {object} */ options = {}) {
  const upstream = await startUpstream({ script, ...options });
  started.push(upstream);
  return upstream;
}
after(() => Promise.all(started.map((upstream) => upstream.close())));

const post = (/** @type {string} */ url, /** @type {object} */ init = {}) =>
  fetch(url, { method: "POST", body: '{"model":"gpt-5"}', ...init });
const code = (/** @type {any} */ error) => error.cause?.code ?? error.code;

describe("the scripted upstream", () => {
  it("plays its steps in order, and says so when none is left", async () => {
    const upstream = await upstreamOf([
      { status: 503, json: { no: 1 } },
      { body: "two", headers: { "x-step": "2" } },
    ]);
    const first = await post(`${upstream.url}/v1`);
    assert.deepEqual([first.status, first.statusText, await first.json()], [503, "Service Unavailable", { no: 1 }]);
    const second = await post(`${upstream.url}/v1`);
    assert.deepEqual([second.status, second.headers.get("x-step"), await second.text()], [200, "2", "two"]);
    const third = await post(`${upstream.url}/v1`);
    assert.equal(third.status, 418);
    assert.match(await third.text(), /no step is left/);
    assert.deepEqual(
      upstream.unscripted.map((seen) => seen.n),
      [3],
    );
  });

  it("repeats the last step when asked to", async () => {
    const upstream = await upstreamOf([{ body: "a" }, { body: "b" }], { repeatLast: true });
    const texts = [];
    for (let i = 0; i < 4; i++) texts.push(await (await post(upstream.url)).text());
    assert.deepEqual(texts, ["a", "b", "b", "b"]);
  });

  it("keeps a script for each path, and asks a function for a step", async () => {
    const upstream = await upstreamOf({
      "/a": [{ body: "a1" }, { body: "a2" }],
      "*": (/** @type {any} */ request) => ({
        json: { n: request.n, nOfPath: request.nOfPath, model: request.json.model },
      }),
    });
    assert.equal(await (await post(`${upstream.url}/a?x=1`)).text(), "a1");
    assert.deepEqual(await (await post(`${upstream.url}/b`)).json(), { n: 2, nOfPath: 1, model: "gpt-5" });
    assert.equal(await (await post(`${upstream.url}/a`)).text(), "a2");
  });

  it("writes down what it saw, and no credential", async () => {
    const upstream = await upstreamOf([{}]);
    await post(`${upstream.url}/v1/x?key=AIzaSyEXAMPLE12345&alt=sse`, {
      headers: { authorization: "Bearer sk-secret-9999abcd", "x-api-key": "short", "x-other": "plain" },
      body: "not JSON é",
    });
    const [seen] = upstream.seen;
    assert.ok(seen);
    assert.deepEqual(
      [
        seen.method,
        seen.path,
        seen.headers["authorization"],
        seen.headers["x-api-key"],
        seen.headers["x-other"],
        seen.body,
        seen.json,
      ],
      ["POST", "/v1/x?key=***2345&alt=sse", "Bearer ***abcd", "***", "plain", "not JSON é", undefined],
    );
    assert.ok(!JSON.stringify(upstream.seen).includes("secret"));
    assert.equal(seen.completed, true);
    assert.ok(seen.headAt !== null && seen.endAt !== null && seen.at <= seen.headAt && seen.headAt <= seen.endAt);
  });

  it("reads bodies that are sent in chunks", async () => {
    const upstream = await upstreamOf([{}]);
    const body = new ReadableStream({
      start(controller) {
        for (const piece of ['{"model"', ":", '"gpt-5"}']) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    await post(upstream.url, { body, duplex: "half" });
    assert.deepEqual(upstream.seen[0]?.json, { model: "gpt-5" });
  });

  it("serves requests side by side, and counts connections", async () => {
    const upstream = await upstreamOf(() => ({ delayHeadMs: 60, body: "ok" }));
    await Promise.all(Array.from({ length: 8 }, async () => (await post(upstream.url)).text()));
    assert.equal(upstream.maxInFlight, 8);
    assert.equal(upstream.connections.opened, 8);
    await upstream.waitUntil(() => upstream.inFlight() === 0);
  });

  it("keeps connections alive unless a step closes them", async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const upstream = await upstreamOf([{ body: "1" }, { body: "2", close: true }, { body: "3" }]);
    const headers = [];
    for (let i = 0; i < 3; i++) headers.push(await viaHttp(upstream.url, agent));
    agent.destroy();
    assert.deepEqual(
      upstream.seen.map((seen) => seen.connection),
      [1, 1, 2],
    );
    assert.equal(headers[1]?.["connection"], "close");
  });

  it("drops an idle connection unannounced", async () => {
    const upstream = await upstreamOf([{ body: "1", closeIdleMs: 20 }]);
    const socket = net.connect(upstream.port, "127.0.0.1");
    const closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("data", () => {});
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await closed;
    assert.equal(upstream.seen[0]?.completed, true);
  });

  it("delays the head and the parts", async () => {
    const upstream = await upstreamOf([{ delayHeadMs: 60, body: ["a", "b", 40, "c"], delayBetweenChunksMs: 30 }]);
    const before = performance.now();
    const response = await post(upstream.url);
    const head = performance.now() - before;
    assert.equal(await response.text(), "abc");
    const whole = performance.now() - before;
    assert.ok(head >= 55, `head after ${head} ms`);
    assert.ok(whole - head >= 90, `body took ${whole - head} ms`);
  });

  it("drips a body in small pieces", async () => {
    const upstream = await upstreamOf([{ body: "0123456789", drip: { bytes: 3, everyMs: 15 } }]);
    const response = await post(upstream.url);
    const sizes = [];
    for await (const chunk of /** @type {any} */ (response.body)) sizes.push(chunk.length);
    assert.deepEqual(sizes, [3, 3, 3, 1]);
  });

  it("resets before the head", async () => {
    const upstream = await upstreamOf([{ resetBeforeHead: true }]);
    await assert.rejects(post(upstream.url), (error) => code(error) === "ECONNRESET");
  });

  it("ends before the head", async () => {
    const upstream = await upstreamOf([{ endBeforeHead: true }]);
    await assert.rejects(post(upstream.url), (error) => code(error) === "UND_ERR_SOCKET");
  });

  it("resets after exactly so many bytes of the body", async () => {
    const upstream = await upstreamOf([{ json: { text: "x".repeat(100) }, resetAtByte: 40 }]);
    const { received, error } = await readAll(await post(upstream.url));
    assert.equal(received, 40);
    assert.equal(code(error), "ECONNRESET");
    assert.equal(upstream.seen[0]?.sentBytes, 40);
  });

  it("half-closes a chunked body, whose end is then missing", async () => {
    const step = openai.chatStream("one two three");
    const upstream = await upstreamOf([{ ...step, endAtByte: bytesOf(step.body, 2) }]);
    const { received, error } = await readAll(await post(upstream.url));
    assert.equal(received, bytesOf(step.body, 2));
    assert.equal(code(error), "UND_ERR_SOCKET");
  });

  it("claims a wrong content-length", async () => {
    const upstream = await upstreamOf([{ body: "short", contentLength: 50, endAtByte: 5 }]);
    const { received, error } = await readAll(await post(upstream.url));
    assert.equal(received, 5);
    assert.ok(error);
  });

  it("sends a body whose end is the end of the connection", async () => {
    const upstream = await upstreamOf([{ body: ["until ", "the end"], contentLength: false }]);
    const response = await post(upstream.url);
    assert.equal(response.headers.get("content-length"), null);
    assert.equal(response.headers.get("transfer-encoding"), null);
    assert.equal(await response.text(), "until the end");
  });

  it("hangs before the head until the client gives up, and notes who did", async () => {
    const upstream = await upstreamOf([{ hang: "head" }]);
    await assert.rejects(post(upstream.url, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
    await upstream.waitUntil(() => upstream.inFlight() === 0);
    assert.deepEqual([upstream.seen[0]?.abortedByClient, upstream.seen[0]?.completed], [true, false]);
  });

  it("hangs within the body", async () => {
    const upstream = await upstreamOf([{ body: "0123456789", hang: 4 }]);
    const { received, error } = await readAll(await post(upstream.url, { signal: AbortSignal.timeout(80) }));
    assert.equal(received, 4);
    assert.equal(error?.name, "TimeoutError");
    await upstream.waitUntil(() => upstream.seen[0]?.abortedByClient === true);
  });

  it("refuses connections where nobody listens", async () => {
    await assert.rejects(post(await refusedUrl()), (error) => code(error) === "ECONNREFUSED");
  });

  it("sends bytes that are no UTF-8, and heads that are no HTTP", async () => {
    const upstream = await upstreamOf([
      { body: new Uint8Array([0xff, 0x00, 0xc3]) },
      { raw: "HTTQ/9 what\r\n\r\n", close: true },
    ]);
    assert.deepEqual(
      new Uint8Array(await (await post(upstream.url)).arrayBuffer()),
      new Uint8Array([0xff, 0x00, 0xc3]),
    );
    await assert.rejects(post(upstream.url), (error) => code(error)?.startsWith("HPE_"));
  });

  it("sends a large body under backpressure without holding it", async () => {
    const part = new Uint8Array(65536);
    const upstream = await upstreamOf([
      {
        body: function* () {
          for (let i = 0; i < 320; i++) yield part;
        },
      },
    ]);
    assert.equal((await readAll(await post(upstream.url))).received, 320 * 65536);
  });

  it("can be closed with requests in every phase", async () => {
    const upstream = await startUpstream({
      script: [{ hang: "head" }, { body: "abc", hang: 1 }, { delayHeadMs: 60_000 }],
    });
    const calls = [1, 2, 3].map(() => post(upstream.url).then((response) => response.text()));
    const settled = Promise.allSettled(calls);
    await upstream.waitForRequests(3);
    await upstream.close();
    assert.deepEqual(
      (await settled).map((result) => result.status),
      ["rejected", "rejected", "rejected"],
    );
    assert.equal(upstream.connections.open, 0);
  });
});

describe("the bodies", () => {
  const streams = {
    chat: openai.chatStream,
    responses: openai.responseStream,
    messages: anthropic.messageStream,
    gemini: gemini.contentStream,
    ollama: ollama.chatStream,
    cohere: cohere.chatStream,
  };
  const text = "Keep the keel even, whatever the wind does.";

  for (const [name, build] of Object.entries(streams)) {
    it(`${name} streams carry the text, one event a part, each of them JSON`, () => {
      const { body } = build(text);
      const eol = name === "gemini" ? "\r\n" : "\n";
      let joined = "";
      for (const part of body) {
        assert.ok(part.endsWith(name === "ollama" ? "\n" : eol + eol));
        const data = name === "ollama" ? part : part.slice(part.indexOf("data: ") + 6);
        if (data.trim() === "[DONE]") continue;
        const json = JSON.parse(data);
        if (/done|completed|stop|end|added|start/.test(json.type ?? "")) continue;
        joined += pick(json);
      }
      assert.equal(joined, text);
    });
  }

  it("are what the providers' own names for their errors say", () => {
    assert.equal(openai.billing().json?.["error"].code, "insufficient_quota");
    assert.equal(anthropic.overloaded().status, 529);
    assert.equal(
      gemini.dailyQuota().json?.["error"].details[0].violations[0].quotaId,
      "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    );
  });
});

/** The text that an event carries, whichever protocol it is. */
function pick(/** @type {any} */ json) {
  return (
    json.choices?.[0]?.delta?.content ??
    (typeof json.delta === "string" ? json.delta : undefined) ??
    json.delta?.text ??
    json.candidates?.[0]?.content.parts[0].text ??
    json.message?.content ??
    json.delta?.message?.content?.text ??
    ""
  );
}

async function readAll(/** @type {Response} */ response) {
  let received = 0;
  try {
    for await (const chunk of /** @type {any} */ (response.body)) received += chunk.length;
    return { received, error: null };
  } catch (error) {
    return { received, error: /** @type {any} */ (error) };
  }
}

function viaHttp(/** @type {string} */ url, /** @type {http.Agent} */ agent) {
  return new Promise((resolve, reject) => {
    http
      .get(url, { agent }, (response) => {
        response.resume();
        response.on("end", () => resolve(response.headers));
      })
      .on("error", reject);
  });
}
