/** What is tried again, how often, and when; wait hints; and what the caller gets when it was all in vain. */
const RUNTIMES = ["node", "bun", "deno", "workerd", "browser"];

export default function (test, { lib, testing: { openai, anthropic }, assert, rig }) {
  test("an overload is tried again, after a backoff", async () => {
    const { run, chat, upstream, elapsed } = rig([openai.overloaded(), openai.chat("fine")]);
    assert.equal((await run(() => chat())).status, 200);
    assert.equal(upstream.seen.length, 2);
    assert.between(elapsed(), 1, 20_000);
  });

  test("after three attempts the last answer comes back as it came", async () => {
    const { run, chat, upstream, calls } = rig(() => openai.overloaded());
    const response = await run(() => chat());
    assert.equal(response.status, 503);
    assert.equal((await response.json()).error.code, "server_is_overloaded");
    assert.equal(response.headers.get("x-evenkeel-attempts"), "3");
    assert.equal(upstream.seen.length, 3);
    assert.deepEqual([calls()[0].status, calls()[0].attempts], ["failed", 3]);
  });

  test("maxAttempts is obeyed", async () => {
    const { run, chat, upstream } = rig(() => openai.overloaded(), { retry: { maxAttempts: 5, budget: false } });
    await run(() => chat());
    assert.equal(upstream.seen.length, 5);
  });

  test("a quota that is used up is not tried again", async () => {
    const { run, chat, upstream, attempts } = rig([openai.quotaExhausted()]);
    assert.equal((await run(() => chat())).status, 429);
    assert.equal(upstream.seen.length, 1);
    assert.equal(attempts()[0].error_class, "quota_exhausted");
  });

  test("an answer that breaks off in its middle is tried again, and nobody sees half of it", async () => {
    for (const end of ["close", "reset"]) {
      const { run, chat, attempts } = rig([{ ...openai.chat("a long answer"), cutAt: 60, end }, openai.chat("whole")]);
      const response = await run(() => chat());
      assert.equal((await response.json()).choices[0].message.content, "whole");
      assert.equal(attempts()[0].status, "failed");
    }
  });

  for (const as of RUNTIMES) {
    test(`a refused connection and a reset are tried again in the words of ${as}`, async () => {
      for (const fail of ["refused", "reset"]) {
        const { run, chat, attempts } = rig([{ fail, as }, openai.chat("fine")]);
        assert.equal((await run(() => chat())).status, 200);
        assert.equal(attempts()[0].error_class, "connection_error", fail);
        if (as !== "workerd" && as !== "browser") {
          assert.equal(attempts()[0].delivery, fail === "refused" ? "not_sent" : "maybe_sent", fail);
        }
      }
    });
  }

  test("with ambiguous: never, what may have arrived is not sent twice", async () => {
    const { run, chat, upstream } = rig([{ fail: "reset" }, openai.chat("fine")], { retry: { ambiguous: "never" } });
    await assert.rejects(run(() => chat()));
    assert.equal(upstream.seen.length, 1);
  });

  test("without any answer the error says what happened, how often, and why", async () => {
    const { run, chat, calls } = rig(() => ({ fail: "refused" }));
    const error = await assert.rejects(run(() => chat()));
    assert.ok(error instanceof lib.KeelError, "no KeelError");
    assert.equal(error.class, "connection_error");
    assert.equal(error.attempts.length, 3);
    assert.equal(error.logicalRequestId, calls()[0].logical_request_id);
    assert.match(error.message, /openai.*connection_error.*3 attempts/);
    assert.equal(error.cause.message, "fetch failed");
  });

  test("an SDK that obeys x-should-retry gets a 503 in the provider's envelope instead", async () => {
    const { run, chat } = rig(() => ({ fail: "refused" }));
    const headers = { "content-type": "application/json", "x-stainless-lang": "js", "x-stainless-retry-count": "0" };
    const response = await run(() => chat({ headers }));
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("x-should-retry"), "false");
    assert.equal(response.headers.get("x-evenkeel-synthesized"), "connection_error");
    assert.equal((await response.json()).error.type, "connection_error");
  });

  test("the user's hook has the last word", async () => {
    const { run, chat, upstream, attempts } = rig([openai.badRequest("warming up"), openai.chat("fine")], {
      classify: (signal, builtIn) =>
        signal.body.includes("warming up")
          ? { ...builtIn, class: "overloaded", retryable: true, scope: "model" }
          : undefined,
    });
    assert.equal((await run(() => chat())).status, 200);
    assert.equal(upstream.seen.length, 2);
    assert.equal(attempts()[0].rule, "user.classify");
  });

  const hints = [
    ["retry-after in seconds", (now) => [{ "retry-after": "7" }, 7_000, now]],
    ["retry-after-ms", (now) => [{ "retry-after-ms": "1500" }, 1_500, now]],
    ["retry-after as a date", (now) => [{ "retry-after": new Date(now + 9_000).toUTCString() }, 8_000, now]],
  ];
  for (const [name, make] of hints) {
    test(`${name} is waited out, never less`, async () => {
      const made = [];
      const { run, chat, clock, elapsed, attempts } = rig((seen) =>
        seen.n === 1 ? { ...openai.rateLimited(), headers: made[0] } : openai.chat("fine"),
      );
      const [headers, least] = make(clock.now());
      made.push(headers);
      assert.equal((await run(() => chat())).status, 200);
      assert.between(elapsed(), least, least + 5_000);
      assert.ok(attempts()[0].retry_after_ms >= least, `${attempts()[0].retry_after_ms}`);
    });
  }

  test("a hint beyond maxWaitMs ends the call at once, with when to come back", async () => {
    const { run, chat, elapsed, calls, clock } = rig([openai.rateLimited(3_600)]);
    const response = await run(() => chat());
    assert.equal(response.status, 429);
    assert.equal(elapsed(), 0);
    assert.between(Date.parse(calls()[0].retry_at), clock.now() + 3_600_000, clock.now() + 3_610_000);
  });

  test("a hint beyond the deadline ends the call at once", async () => {
    const { run, chat, keel, elapsed } = rig([openai.rateLimited(20)]);
    const response = await run(() => chat({ fetch: keel.with({ deadlineMs: 5_000 }).fetch }));
    assert.equal(response.status, 429);
    assert.equal(elapsed(), 0);
  });

  test("Anthropic's overload is one, and its facts are read", async () => {
    const { run, keel, attempts } = rig([anthropic.overloaded(), anthropic.message("fine")]);
    const body = JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 100, messages: [] });
    await run(() => keel.fetch("https://api.anthropic.com/v1/messages", { method: "POST", body }));
    const [first, second] = attempts();
    assert.deepEqual(
      [first.provider, first.error_class, first.provider_request_id],
      ["anthropic", "overloaded", "req_test"],
    );
    assert.deepEqual([second.status, second.output_token_count, second.max_output_tokens], ["succeeded", 1, 100]);
  });
}
