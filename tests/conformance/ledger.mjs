/** Every attempt and every call is on the record, without a key or a word of a prompt; sinks can't touch a call. */
export default function (test, { testing: { openai }, assert, rig }) {
  test("one record an attempt and one a call, in order, by one id", async () => {
    const { run, chat, keel, ...rest } = rig([openai.overloaded(), { fail: "reset" }, openai.chat("one two")]);
    await run(() => chat());
    await keel.flush();
    const records = rest.records.filter((record) => record.type !== "notice");
    assert.deepEqual(
      records.map((record) => [record.type, record.status, record.attempt_no ?? record.attempts]),
      [
        ["attempt", "failed", 1],
        ["attempt", "failed", 2],
        ["attempt", "succeeded", 3],
        ["call", "succeeded", 3],
      ],
    );
    assert.equal(new Set(records.map((record) => record.logical_request_id)).size, 1);
    assert.equal(new Set(records.slice(0, 3).map((record) => record.attempt_id)).size, 3);
    assert.deepEqual([records[3].input_token_count, records[3].output_token_count], [11, 2]);
  });

  test("context, model and times are in them", async () => {
    const { run, chat, keel, attempts, clock } = rig([{ ...openai.chat("hi"), delayMs: 120 }]);
    const context = { tenant: "acme", operation: "ticket.summary", logicalRequestId: "order-7" };
    const began = new Date(clock.now()).toISOString();
    await run(() => chat({ fetch: keel.with(context).fetch }));
    const [record] = attempts();
    assert.deepEqual(
      [record.user_or_tenant_id, record.operation_type, record.logical_request_id, record.provider, record.model],
      ["acme", "ticket.summary", "order-7", "openai", "gpt-5"],
    );
    assert.deepEqual([record.started_at, record.latency_ms, record.schema], [began, 120, 1]);
  });

  test("neither a key nor a word of prompt or answer", async () => {
    const { run, chat, keel, records, attempts } = rig([openai.badRequest("tuna-error"), openai.chat("tuna-answer")]);
    await run(() => chat({ prompt: "tuna-prompt" }));
    await run(() => chat({ prompt: "tuna-prompt" }));
    await keel.flush();
    const all = JSON.stringify(records);
    assert.ok(!/tuna|sk-test/.test(all), all);
    const [first, second] = attempts();
    assert.equal(first.prompt_hash, second.prompt_hash);
    assert.match(first.prompt_hash, /^[0-9a-f]{32}$/);
  });

  test("the idempotency key is the same on every attempt, the caller's own kept", async () => {
    const { run, chat, keel, upstream } = rig(() => openai.overloaded());
    await run(() => chat({ fetch: keel.with({ idempotencyKey: "order-7" }).fetch }));
    assert.deepEqual(
      upstream.seen.map((seen) => seen.headers["idempotency-key"]),
      ["order-7", "order-7", "order-7"],
    );
  });

  test("flush waits for slow sinks, and flushes those that can", async () => {
    const done = [];
    let clock;
    const { run, chat, keel, ...rest } = rig([openai.chat("hi")], {
      ledger: [
        async (record) => {
          await clock.sleep(500);
          done.push(record.type);
        },
        { write() {}, flush: async () => void done.push("flushed") },
      ],
    });
    clock = rest.clock;
    await run(async () => {
      await chat();
      await keel.flush();
    });
    assert.deepEqual(done, ["attempt", "call", "flushed"]);
  });

  test("flush gives up on a write that never ends, and does not wait for it again", async () => {
    const { run, chat, keel, elapsed } = rig([openai.chat("hi")], { ledger: () => new Promise(() => {}) });
    await run(() => chat());
    await run(() => keel.flush());
    const once = elapsed();
    assert.between(once, 30_000, 31_000);
    await run(() => keel.flush());
    assert.equal(elapsed(), once);
  });

  test("a sink that throws, rejects or never ends touches no call", async () => {
    const { run, chat } = rig([openai.overloaded(), openai.chat("hi")], {
      ledger: [
        () => {
          throw new Error("broken");
        },
        () => Promise.reject(new Error("broken, later")),
        () => new Promise(() => {}),
      ],
    });
    assert.equal((await run(() => chat())).status, 200);
  });

  test("a sink may call the keel", async () => {
    const inner = [];
    let own;
    own = rig(() => openai.chat("hi"), {
      ledger: (record) => {
        if (record.type === "call" && inner.length < 3) inner.push(own.chat());
      },
    });
    await own.run(async () => {
      await own.chat();
      while (inner.length < 3) await own.clock.sleep(1);
      for (const response of await Promise.all(inner)) assert.equal(response.status, 200);
    });
  });
}
