/** Whatever kind of body a request has, it is sent whole, and whole again on a retry. */
const TEXT = JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Grüße, 世界 🌊" }] });
const URL_OF_CHAT = "https://api.openai.com/v1/chat/completions";

export default function (test, { testing: { openai }, assert, rig }) {
  const utf8 = () => new TextEncoder().encode(TEXT);
  const streamOf = (bytes, size = 7) => {
    let at = 0;
    return new ReadableStream({
      pull(controller) {
        if (at >= bytes.byteLength) return controller.close();
        controller.enqueue(bytes.slice(at, at + size));
        at += size;
      },
    });
  };
  const within = () => {
    const bytes = utf8();
    const larger = new Uint8Array(bytes.byteLength + 10);
    larger.set(bytes, 5);
    return larger.subarray(5, 5 + bytes.byteLength);
  };

  const kinds = [
    ["a string", () => ({ body: TEXT })],
    ["a Uint8Array", () => ({ body: utf8() })],
    ["a part of a larger buffer", () => ({ body: within() })],
    ["an ArrayBuffer", () => ({ body: utf8().buffer })],
    ["a DataView", () => ({ body: new DataView(utf8().buffer) })],
    ["a Blob", () => ({ body: new Blob([TEXT]) })],
    ["a stream", () => ({ body: streamOf(utf8()), duplex: "half" })],
  ];
  for (const [name, make] of kinds) {
    test(`${name} is sent whole, and whole again`, async () => {
      const { run, keel, upstream, attempts } = rig([openai.overloaded(), openai.chat("fine")]);
      const response = await run(() => keel.fetch(URL_OF_CHAT, { method: "POST", ...make() }));
      assert.equal(response.status, 200);
      assert.deepEqual(
        upstream.seen.map((seen) => seen.body),
        [TEXT, TEXT],
      );
      assert.equal(attempts()[0].model, "gpt-5");
    });
  }

  test("a Request is sent whole, and whole again", async () => {
    const { run, keel, upstream } = rig([openai.overloaded(), openai.chat("fine")]);
    const request = new Request(URL_OF_CHAT, { method: "POST", body: TEXT, headers: { "x-mine": "1" } });
    assert.equal((await run(() => keel.fetch(request))).status, 200);
    assert.deepEqual(
      upstream.seen.map((seen) => [seen.method, seen.url, seen.body, seen.headers["x-mine"]]),
      [1, 2].map(() => ["POST", URL_OF_CHAT, TEXT, "1"]),
    );
  });

  test("a form keeps its parts, files too", async () => {
    const { run, keel, upstream, attempts } = rig([openai.overloaded(), openai.chat("fine")]);
    const form = new FormData();
    form.append("model", "whisper-1");
    form.append("file", new Blob(["RIFF-not-really"], { type: "audio/wav" }), "speech.wav");
    const url = "https://api.openai.com/v1/audio/transcriptions";
    assert.equal((await run(() => keel.fetch(url, { method: "POST", body: form }))).status, 200);
    for (const seen of upstream.seen) assert.match(seen.body, /whisper-1[\s\S]*speech\.wav[\s\S]*RIFF-not-really/);
    assert.equal(attempts()[0].model, "whisper-1");
  });

  test("a kind that only the given fetch knows goes to it untouched", async () => {
    class PolyfilledForm {}
    const bodies = [];
    const { run, keel } = rig([], {
      fetch: async (_, init) => {
        bodies.push(init.body);
        return bodies.length === 1 ? new Response("{}", { status: 503 }) : new Response("{}");
      },
    });
    const body = new PolyfilledForm();
    assert.equal((await run(() => keel.fetch(URL_OF_CHAT, { method: "POST", body }))).status, 200);
    assert.ok(bodies.length === 2 && bodies.every((one) => one === body), "another body");
  });

  test("URL parameters are sent as they are", async () => {
    const { run, keel, upstream } = rig([openai.overloaded(), openai.chat("fine")]);
    await run(() => keel.fetch(URL_OF_CHAT, { method: "POST", body: new URLSearchParams({ q: "a b", r: "ü" }) }));
    assert.deepEqual(
      upstream.seen.map((seen) => seen.body),
      ["q=a+b&r=%C3%BC", "q=a+b&r=%C3%BC"],
    );
  });

  test("a stream longer than what may be kept is sent once, whole", async () => {
    const bytes = new Uint8Array(8_000).fill(97);
    const { run, keel, upstream } = rig([openai.overloaded()], { body: { maxBufferedBytes: 4_000 } });
    const init = { method: "POST", body: streamOf(bytes, 1_000), duplex: "half" };
    assert.equal((await run(() => keel.fetch(URL_OF_CHAT, init))).status, 503);
    assert.deepEqual(
      upstream.seen.map((seen) => seen.body.length),
      [8_000],
    );
  });

  test("an answer of megabytes comes whole", async () => {
    const bytes = Uint8Array.from({ length: 3_000_000 }, (_, i) => (i * 31 + (i >> 8)) & 255);
    const sum = (all) => all.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);
    const chunks = Array.from({ length: 30 }, (_, i) => bytes.subarray(i * 100_000, (i + 1) * 100_000));
    const { run, chat } = rig([{ headers: { "content-type": "application/octet-stream" }, chunks, gapMs: 1 }]);
    const got = new Uint8Array(await run(async () => (await chat()).arrayBuffer()));
    assert.equal(got.byteLength, bytes.byteLength);
    assert.equal(sum(got), sum(bytes));
  });

  test("an answer longer than what may be kept is passed on", async () => {
    const chunks = Array.from({ length: 20 }, () => "x".repeat(1_000));
    const { run, chat } = rig([{ headers: { "content-type": "text/plain" }, chunks, gapMs: 5 }], {
      body: { maxBufferedBytes: 4_000 },
    });
    assert.equal((await run(async () => (await chat()).text())).length, 20_000);
  });
}
