/** Options that can't be meant: refused at once, with the path, what was given and what it should be. */
export default function (test, { lib, assert }) {
  const wrong = [
    [{ retry: { maxAttempts: 0 } }, "retry.maxAttempts"],
    [{ retry: { maxAttempts: 2.5 } }, "retry.maxAttempts"],
    [{ retry: { baseMs: "500" } }, "retry.baseMs"],
    [{ retry: { baseMs: 5_000, capMs: 100 } }, "retry.capMs"],
    [{ retry: { budget: { ratio: -1 } } }, "retry.budget.ratio"],
    [{ timeout: { totalMs: 1 } }, "timeout"],
    [{ timeouts: { totalMs: Number.NaN } }, "timeouts.totalMs"],
    [{ stream: { commitOn: "middle" } }, "stream.commitOn"],
    [{ ledger: "stdout" }, "ledger"],
    [{ ledger: [() => {}, {}] }, "ledger[1]"],
    [{ fetch: "https://api.openai.com" }, "fetch"],
    [{ clock: { now: () => 0 } }, "clock.setTimeout"],
    [{ seed: -1 }, "seed"],
    [{ onCoreFailure: "explode" }, "onCoreFailure"],
    [{ providers: { own: { match: [] } } }, "providers.own.match"],
    [{ pools: [{ preflight: "yes" }] }, "pools[0].preflight"],
  ];
  for (const [options, path] of wrong) {
    test(`${JSON.stringify(options)} is refused at ${path}`, async () => {
      const error = assert.throws(() => lib.createKeel(options));
      assert.ok(error instanceof lib.KeelConfigError, String(error));
      assert.equal(error.path, path);
      assert.match(error.message, /got .*, expected /);
    });
  }

  test("a context is checked too", async () => {
    const keel = lib.createKeel();
    assert.equal(assert.throws(() => keel.with({ tenant: 5 })).path, "tenant");
    assert.equal(assert.throws(() => keel.with({ tennant: "acme" })).path, "tennant");
  });
}
