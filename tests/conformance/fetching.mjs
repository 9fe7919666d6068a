/** `keel.fetch` as a drop-in for `fetch`: what goes out is what the caller wrote, what comes back is what was sent. */
export default function (test, { lib, testing: { openai }, assert, rig }) {
  test("a success comes back as it came", async () => {
    const { run, chat } = rig([{ status: 201, headers: { "x-one": "1", "x-request-id": "req_9" }, json: { a: 1 } }]);
    const response = await run(() => chat());
    assert.equal(response.status, 201);
    assert.equal(response.ok, true);
    assert.equal(response.headers.get("x-one"), "1");
    assert.equal(response.url, "https://api.openai.com/v1/chat/completions");
    assert.deepEqual(await response.json(), { a: 1 });
  });

  test("the answer is a Response of this host", async () => {
    const { run, chat } = rig([openai.chat("hi")]);
    assert.ok((await run(() => chat())) instanceof Response, "no Response");
  });

  test("method, headers and body arrive as they were written", async () => {
    const { run, keel, upstream } = rig(() => openai.chat("hi"));
    const body = '{ "model": "gpt-5",\n "messages": [] }';
    for (const headers of [{ "X-Mine": "1" }, [["X-Mine", "1"]], new Headers({ "X-Mine": "1" })]) {
      await run(() => keel.fetch("https://api.openai.com/v1/chat/completions", { method: "PUT", headers, body }));
    }
    assert.equal(upstream.seen.length, 3);
    for (const seen of upstream.seen)
      assert.deepEqual([seen.method, seen.headers["x-mine"], seen.body], ["PUT", "1", body]);
  });

  test("takes a string, a URL or a Request", async () => {
    const { run, keel, upstream } = rig(() => openai.chat("hi"));
    const url = "https://api.openai.com/v1/models";
    for (const input of [url, new URL(url), new Request(url)]) {
      assert.equal((await run(() => keel.fetch(input))).status, 200);
    }
    assert.deepEqual(
      upstream.seen.map((seen) => [seen.url, seen.method]),
      [url, url, url].map((one) => [one, "GET"]),
    );
  });

  test("members of init that it does not know go through untouched", async () => {
    const got = [];
    const { run, chat } = rig([], {
      fetch: (_, init) => {
        got.push(init);
        return Promise.resolve(new Response("{}"));
      },
    });
    const cf = { cacheTtl: 5 };
    await run(() => chat({ cf }));
    assert.ok(got[0].cf === cf, "cf is another object");
  });

  test("an error of the caller's own fault is not sent again, and comes back with the facts", async () => {
    const { run, chat, upstream } = rig([openai.badRequest("no such role")]);
    const response = await run(() => chat());
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.message, "no such role");
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.equal(response.headers.get("x-evenkeel-class"), "bad_request");
    assert.equal(response.headers.get("x-evenkeel-attempts"), "1");
    assert.ok((response.headers.get("x-evenkeel-logical-request-id") ?? "").length > 10, "no id");
    assert.equal(upstream.seen.length, 1);
  });

  test("an empty answer stays empty", async () => {
    const { run, chat } = rig([{ status: 204 }]);
    const response = await run(() => chat());
    assert.equal(response.status, 204);
    assert.equal(await response.text(), "");
  });

  test("bytes that are no text come through unchanged", async () => {
    const bytes = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7) % 256);
    const { run, chat } = rig([{ headers: { "content-type": "audio/mpeg" }, body: bytes }]);
    const got = new Uint8Array(await (await run(() => chat())).arrayBuffer());
    assert.deepEqual([...got], [...bytes]);
  });

  test("a clone of the answer and the answer both can be read", async () => {
    const { run, chat } = rig([openai.chat("twice")]);
    const response = await run(() => chat());
    const copy = response.clone();
    assert.deepEqual(await copy.json(), await response.json());
  });

  test("works without this, and under another name", async () => {
    const { run, keel } = rig([openai.chat("hi")]);
    const { fetch: renamed } = keel;
    assert.equal((await run(() => renamed("https://api.openai.com/v1/models"))).status, 200);
  });

  test("fifty calls at once each get their own answer", async () => {
    const { run, chat } = rig((seen) => ({
      ...openai.chat(seen.json.messages[0].content),
      delayMs: (seen.n * 13) % 40,
    }));
    const prompts = Array.from({ length: 50 }, (_, i) => `prompt ${i}`);
    const answers = await run(() => Promise.all(prompts.map(async (prompt) => (await chat({ prompt })).json())));
    assert.deepEqual(
      answers.map((answer) => answer.choices[0].message.content),
      prompts,
    );
  });

  test("a fetch that calls the keel again from within is served", async () => {
    const inner = rig(() => openai.chat("inner"));
    const outer = inner.keel;
    const again = lib.createKeel({
      clock: inner.clock,
      seed: 1,
      fetch: (input, init) => outer.fetch(input, init),
    });
    const response = await inner.run(() => inner.chat({ fetch: again.fetch }));
    assert.equal((await response.json()).choices[0].message.content, "inner");
  });

  test("after close calls reject", async () => {
    const { keel, chat } = rig([]);
    keel.close();
    const error = await assert.rejects(chat());
    assert.equal(error.name, "KeelError");
    assert.equal(error.reason, "keel_closed");
    assert.equal(error.retryable, false);
    assert.match(error.message, /not sent: this keel was closed.*createKeel\(\)/);
  });
}
