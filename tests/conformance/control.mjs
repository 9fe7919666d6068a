/** What outlives a call: pools and their preflight, and a state that is each keel's own. */
const pools = (...organisations) =>
  organisations.map((organisation) => ({
    provider: "openai",
    organisation,
    keys: [{ id: organisation, value: `sk-${organisation}` }],
    preflight: true,
  }));
const NO_MODEL = { status: 404, json: { error: { message: "no such model", code: "model_not_found" } } };

export default function (test, { testing: { openai }, assert, rig }) {
  const settle = (calls) =>
    Promise.all(
      calls.map((call) =>
        call.then(
          (response) => response.status,
          (error) => error,
        ),
      ),
    );

  test("a preflight lets one call go first, and all others after it", async () => {
    const { run, chat, upstream, keel } = rig(() => ({ ...openai.chat("fine"), delayMs: 50 }), { pools: pools("a") });
    const calls = Array.from({ length: 10 }, () => chat());
    const statuses = await run(() => settle(calls));
    assert.deepEqual(statuses, Array(10).fill(200));
    const [first, ...others] = upstream.seen.map(({ at }) => at);
    assert.equal(others.length, 9, "no request is made up");
    assert.ok(
      others.every((at) => at >= first + 50),
      "they wait for its answer",
    );
    assert.equal(keel.state().vendor[0].preflight, "passed");
  });

  test("a preflight that is refused spares the others, with its class and a reason", async () => {
    const { run, chat, upstream, notices } = rig(() => ({ ...NO_MODEL, delayMs: 50 }), { pools: pools("a") });
    const calls = Array.from({ length: 10 }, () => chat());
    const [first, ...others] = await run(() => settle(calls));
    assert.equal(first, 404);
    for (const error of others) assert.deepEqual([error.class, error.reason], ["not_found", "preflight_failed"]);
    assert.equal(upstream.seen.length, 1);
    assert.deepEqual(
      notices().map(({ kind, subject }) => `${kind} ${subject}`),
      ["preflight_failed openai/a/gpt-5"],
    );
  });

  test("a preflight that is refused sends the others to another organisation", async () => {
    const script = ({ headers }) =>
      headers.authorization === "Bearer sk-a" ? { ...NO_MODEL, delayMs: 50 } : { ...openai.chat("b"), delayMs: 80 };
    const { run, chat, upstream } = rig(script, { pools: pools("a", "b") });
    const calls = Array.from({ length: 10 }, () => chat());
    const statuses = await run(() => settle(calls));
    assert.deepEqual(statuses, [404, ...Array(9).fill(200)]);
    const toA = upstream.seen.filter(({ headers }) => headers.authorization === "Bearer sk-a");
    assert.equal(toA.length, 1);
  });

  test("the state of one keel is its own", async () => {
    const one = rig([openai.chat("fine")]);
    const other = rig([]);
    await one.run(() => one.chat());
    assert.deepEqual([one.keel.state().vendor.length, other.keel.state().vendor.length], [1, 0]);
    assert.deepEqual([one.keel.state().permits.returned, other.keel.state().permits.given], [1, 0]);
  });
}
