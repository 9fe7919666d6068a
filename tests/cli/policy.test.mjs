// `evenkeel policy` and keel.explainPolicy(): what a policy means, and what is wrong with it (E7).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createKeel } from "evenkeel";

const CLI = fileURLToPath(new URL("../../pkg/dist/cli.js", import.meta.url));

function run(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, "policy", ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

function withConfig(config, use) {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-policy-"));
  try {
    const file = join(folder, "keel.json");
    writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
    return use(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("evenkeel policy", () => {
  it("E7 prints the worst case of each preset, with nothing wrong in them", () => {
    for (const [preset, worst, attempts] of [
      ["interactive", "60 s", 3],
      ["standard", "600 s", 3],
      ["background", "3600 s", 5],
    ]) {
      const { status, stdout } = run("--preset", preset);
      assert.equal(status, 0, stdout);
      assert.match(stdout, new RegExp(`at most ${worst} and at most ${attempts} requests`));
      assert.doesNotMatch(stdout, /problem:/);
    }
  });

  it("names each thing that is wrong, by its option", () => {
    const config = {
      timeouts: { totalMs: 10_000, firstTokenMs: 20_000, minAttemptMs: 10_000 },
      retry: { capMs: 60_000, maxWaitMs: 30_000, jitter: "none", budget: false },
    };
    withConfig(config, (file) => {
      const { status, stdout } = run("--config", file);
      assert.equal(status, 1);
      for (const path of [
        "timeouts.firstTokenMs",
        "timeouts.minAttemptMs",
        "retry.capMs",
        "retry.maxWaitMs",
        "retry.jitter",
        "retry.budget",
      ]) {
        assert.match(stdout, new RegExp(`problem: ${path}: `), path);
      }
    });
  });

  it("says the same as keel.explainPolicy()", () => {
    const config = {
      retry: { maxAttempts: 4, baseMs: 100, capMs: 300, jitter: "equal" },
      timeouts: { attemptMs: 1_000 },
    };
    const explained = createKeel(config).explainPolicy();
    withConfig(config, (file) => assert.deepEqual(JSON.parse(run("--config", file, "--json").stdout), explained));
    assert.deepEqual(explained.waits, [
      { retry: 1, minMs: 50, maxMs: 100, overloadedMaxMs: 200 },
      { retry: 2, minMs: 100, maxMs: 200, overloadedMaxMs: 300 },
      { retry: 3, minMs: 150, maxMs: 300, overloadedMaxMs: 300 },
    ]);
    assert.equal(explained.maxAttempts, 4);
    assert.equal(explained.worstCaseMs, 4 * 1_000 + 3 * 60_000);
  });

  it("shows that an overload is waited out a step longer, save where waits grow by themselves", () => {
    withConfig({ retry: { baseMs: 100, capMs: 8_000 } }, (file) => {
      assert.match(run("--config", file).stdout, /before attempt 2 .* 0 ms to 100 ms, after an overload 200 ms/);
    });
    withConfig({ retry: { baseMs: 100, capMs: 8_000, jitter: "decorrelated" } }, (file) => {
      assert.doesNotMatch(run("--config", file).stdout, /after an overload/);
    });
  });

  it("tells a misuse in a sentence and status 2", () => {
    assert.match(run("--config", "nowhere.json").stderr, /nowhere\.json can't be read/);
    withConfig("{", (file) => assert.match(run("--config", file).stderr, /is not JSON/));
    withConfig({ retry: { baseMs: -1 } }, (file) => {
      const { status, stderr } = run("--config", file);
      assert.equal(status, 2);
      assert.match(stderr, /retry\.baseMs: got -1, expected milliseconds from 0/);
    });
    assert.equal(run("--preset", "fast").status, 2);
    assert.equal(run("--config", "a", "--preset", "standard").status, 2);
  });
});
