/** Deadlines, and callers who give up: the upstream is told, the reason is the caller's own, nothing is left behind. */
export default function (test, { lib, testing: { openai }, assert, rig }) {
  test("a provider that never answers is left at the total, and told", async () => {
    const { run, chat, upstream, elapsed, clock } = rig(() => ({ hang: true }), { timeouts: { totalMs: 5_000 } });
    const error = await assert.rejects(run(() => chat()));
    assert.ok(error instanceof lib.KeelError, String(error));
    assert.equal(error.class, "timeout");
    assert.between(elapsed(), 4_900, 5_100);
    assert.equal(upstream.seen[0].aborted, true);
    assert.equal(clock.pending, 0);
  });

  test("a silent first byte is left for another attempt", async () => {
    const { run, chat, elapsed, attempts } = rig([{ hang: true }, openai.chat("fine")], {
      timeouts: { firstByteMs: 2_000 },
    });
    assert.equal((await run(() => chat())).status, 200);
    assert.between(elapsed(), 2_000, 12_000);
    assert.deepEqual([attempts()[0].error_class, attempts()[0].reason], ["timeout", "first_byte_timeout"]);
  });

  test("a body that stops in its middle is bounded too", async () => {
    const stalled = { ...openai.chat("never whole"), cutAt: 30, end: "stall" };
    const { run, chat, attempts } = rig([stalled, openai.chat("fine")], { timeouts: { attemptMs: 3_000 } });
    assert.equal((await (await run(() => chat())).json()).choices[0].message.content, "fine");
    assert.equal(attempts()[0].error_class, "timeout");
    assert.between(attempts()[0].latency_ms, 2_900, 3_100);
  });

  test("the context's deadline holds for this call alone", async () => {
    const { run, chat, keel, elapsed } = rig(() => ({ ...openai.chat("slow"), delayMs: 3_000 }));
    await assert.rejects(run(() => chat({ fetch: keel.with({ deadlineMs: 1_200 }).fetch })));
    assert.between(elapsed(), 1_100, 1_300);
    assert.equal((await run(() => chat())).status, 200);
  });

  test("a wait that would leave no time for an attempt is not begun", async () => {
    const { run, chat, elapsed, calls } = rig(() => openai.rateLimited(4), { timeouts: { totalMs: 4_500 } });
    assert.equal((await run(() => chat())).status, 429);
    assert.equal(elapsed(), 0);
    assert.equal(calls()[0].reason, "not_enough_time_budget");
  });

  test("a signal that has fired already sends nothing", async () => {
    const { run, chat, upstream } = rig(() => openai.chat("no"));
    const reason = new Error("changed my mind");
    const got = await assert.rejects(run(() => chat({ signal: AbortSignal.abort(reason) })));
    assert.ok(got === reason, "another reason");
    assert.equal(upstream.seen.length, 0);
  });

  const moments = [
    ["while the head is awaited", () => [{ hang: true }]],
    ["while the body is read", () => [{ ...openai.chat("never whole"), cutAt: 30, end: "stall" }]],
    ["in a backoff", () => [openai.rateLimited(30)]],
  ];
  for (const [name, script] of moments) {
    test(`a caller who gives up ${name} gets the own reason at once`, async () => {
      const { run, chat, upstream, elapsed, attempts, calls, clock } = rig(script());
      const controller = new AbortController();
      const reason = new Error("gave up");
      const got = await assert.rejects(
        run(() => {
          clock.setTimeout(() => controller.abort(reason), 700);
          return chat({ signal: controller.signal });
        }),
      );
      assert.ok(got === reason, `another reason: ${got}`);
      assert.equal(elapsed(), 700);
      assert.equal(upstream.seen.length, 1);
      if (name !== "in a backoff") {
        assert.equal(upstream.seen[0].aborted, true);
        assert.equal(attempts()[0].status, "cancelled");
      }
      assert.equal(calls()[0].status, "cancelled");
      assert.equal(clock.pending, 0);
    });
  }

  test("the context's signal cancels as well as the request's own", async () => {
    const { run, chat, keel, clock } = rig(() => ({ hang: true }));
    const controller = new AbortController();
    const { fetch } = keel.with({ signal: controller.signal });
    const got = await assert.rejects(
      run(() => {
        clock.setTimeout(() => controller.abort("enough"), 10);
        return chat({ fetch, signal: new AbortController().signal });
      }),
    );
    assert.equal(got, "enough");
  });

  test("the signal of a Request counts", async () => {
    const { run, keel, clock } = rig(() => ({ hang: true }));
    const controller = new AbortController();
    const error = await assert.rejects(
      run(() => {
        clock.setTimeout(() => controller.abort(), 10);
        return keel.fetch(new Request("https://api.openai.com/v1/models", { signal: controller.signal }));
      }),
    );
    assert.equal(error.name, "AbortError");
  });

  test("a host without AbortSignal.any is served", async () => {
    const any = Object.getOwnPropertyDescriptor(AbortSignal, "any");
    Reflect.deleteProperty(AbortSignal, "any");
    try {
      const { run, chat, keel } = rig([openai.overloaded(), openai.chat("fine")]);
      const { fetch } = keel.with({ signal: new AbortController().signal });
      assert.equal((await run(() => chat({ fetch, signal: new AbortController().signal }))).status, 200);
    } finally {
      if (any !== undefined) Object.defineProperty(AbortSignal, "any", any);
    }
  });
}
