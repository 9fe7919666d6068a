/**
 * Each row of the demo is a test: what comes out of `keel.fetch` under a real SDK, what the ledger says of it, and
 * what the SDK does by itself (so that the left half of the table stays true when an SDK is updated).
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { paintWith, showsColour } from "../../demo/colour.mjs";
import { runAlone, runWithKeel } from "../../demo/run.mjs";
import { INTERESTING, mistakes, SCENARIOS, wasted } from "../../demo/scenarios.mjs";
import { renderTable } from "../../demo/table.mjs";
import { renderTimeline } from "../../demo/timeline.mjs";

const nameOf = (/** @type {import("../../demo/scenarios.mjs").Scenario} */ scenario) =>
  `${scenario.sdk}${scenario.stream ? ", streamed" : ""}: ${scenario.trouble}`;

describe("demo rows with keel.fetch", { concurrency: true }, () => {
  for (const scenario of SCENARIOS) {
    it(nameOf(scenario), async () => {
      const result = await runWithKeel(scenario);
      assert.deepEqual(mistakes(scenario.keel, result), []);
      const attempts = result.records.filter((record) => record.type === "attempt");
      const calls = result.records.filter((record) => record.type === "call");
      assert.equal(attempts.length, result.requests, "a record for each request that the upstream saw");
      assert.equal(calls.length, 1, "one record for the call");
      assert.equal(calls[0].attempts, attempts.length);
      assert.equal(calls[0].status, scenario.keel.outcome === "answer" ? "succeeded" : "failed");
    });
  }
});

describe("demo rows with the SDK alone", { concurrency: true }, () => {
  for (const scenario of SCENARIOS.filter((one) => !one.slowAlone)) {
    it(nameOf(scenario), async () => {
      assert.deepEqual(mistakes(scenario.alone, await runAlone(scenario)), []);
    });
  }
});

describe("the demo's rendering", () => {
  const plain = paintWith(false);

  it("puts a mistake under its row, and counts what was missed and wasted", () => {
    const [scenario] = SCENARIOS.filter((one) => one.id === "openai-reset-in-body");
    assert.ok(scenario);
    const lost = {
      outcome: /** @type {const} */ ("error"),
      detail: "TypeError: terminated",
      status: undefined,
      requests: 1,
      ms: 12,
      records: [],
      error: null,
    };
    const text = renderTable([{ scenario, alone: lost, keel: lost }], plain);
    assert.match(text, /outcome error, expected answer \(TypeError: terminated\)/);
    assert.match(text, /missed: 1 of 1 by the SDK alone, 1 with keel\.fetch\. Wasted requests: 1 and 1\./);
    assert.equal(wasted(scenario, { ...lost, outcome: "answer", requests: 2 }), 0);
  });

  it("shows each attempt of a ledger with what was decided and why", () => {
    const at = (/** @type {number} */ ms) => new Date(1_795_996_800_000 + ms).toISOString();
    const text = renderTimeline(
      [
        {
          type: "attempt",
          attempt_no: 1,
          provider: "openai",
          model: "gpt-5",
          started_at: at(0),
          finished_at: at(100),
          latency_ms: 100,
          status: "failed",
          http_status: 429,
          error_class: "rate_limited",
          rule: "openai.rate_limit_exceeded",
          delivery: "answered",
          decision: "retry",
          backoff_ms: 1040,
          retry_after_ms: 1000,
        },
        {
          type: "attempt",
          attempt_no: 2,
          started_at: at(1140),
          finished_at: at(1200),
          latency_ms: 60,
          status: "succeeded",
          http_status: 200,
          decision: "return",
        },
        { type: "call", logical_request_id: "01K", status: "succeeded", attempts: 2, latency_ms: 1200 },
      ],
      plain,
    );
    for (const part of [
      "Logical request 01K",
      "openai, gpt-5",
      "1. HTTP 429, rate_limited (100 ms)",
      "rule openai.rate_limit_exceeded",
      "retry after 1.0 s, asked for 1.0 s",
      "2. HTTP 200, succeeded (60 ms)",
      "succeeded after 2 attempts in 1.2 s",
    ]) {
      assert.ok(text.includes(part), `${part} in\n${text}`);
    }
    assert.ok(SCENARIOS.some((scenario) => scenario.id === INTERESTING));
  });

  it("uses colour only on a terminal, and not with NO_COLOR", () => {
    assert.equal(showsColour({ isTTY: true }, {}), true);
    assert.equal(showsColour({}, {}), false);
    assert.equal(showsColour({ isTTY: true }, { NO_COLOR: "1" }), false);
    assert.equal(plain.bad("x"), "x");
    assert.equal(paintWith(true).bad("x"), "\u001b[31mx\u001b[39m");
  });
});
