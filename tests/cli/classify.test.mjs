// `evenkeel classify` as a program: the tables of cases through standard input, and what is wrong with it.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("../../pkg/dist/cli.js", import.meta.url));
const NOW = "2026-11-30T00:00:00Z";

function classify(input, ...flags) {
  const text = typeof input === "string" ? input : input.map((one) => JSON.stringify(one)).join("\n");
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, "classify", ...flags], {
    input: text,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  return { status, stderr, lines: stdout.split("\n").filter(Boolean).map(JSON.parse) };
}

/** The verdict on one case. */
function verdict(one) {
  const { status, lines } = classify([{ now: NOW, ...one }]);
  assert.equal(status, 0, JSON.stringify(lines));
  assert.equal(lines.length, 1);
  return lines[0];
}

for (const file of ["provider-errors.json", "more-errors.json"]) {
  test(`every case of ${file} is told right, in order`, () => {
    const cases = JSON.parse(readFileSync(new URL(`../data/${file}`, import.meta.url), "utf8"));
    const { status, stderr, lines } = classify(cases.map((one) => ({ ...one, now: NOW })));
    assert.equal(stderr, "");
    assert.equal(status, 0);
    assert.equal(lines.length, cases.length);
    for (const [at, { id, expect }] of cases.entries()) {
      const got = lines[at];
      if (expect === null) {
        assert.deepEqual(got, { class: null }, id);
        continue;
      }
      const { class: kind, retryable, scope, wait_hint_ms: wait_ms } = got;
      assert.deepEqual({ class: kind, retryable, scope, wait_ms }, { ...expect, wait_ms: expect.wait_ms ?? null }, id);
      const members = ["class", "retryable", "scope", "wait_hint_ms", "reason", "rule", "action"];
      assert.deepEqual(Object.keys(got), members, id);
      assert.match(got.rule, /^[a-z0-9.-]+\.[a-z0-9_]+$/, id);
      assert.ok(got.reason.length > 0, id);
      // What may not be sent again is not; what fails without an answer has none to return.
      assert.ok(["retry", "return", "fail"].includes(got.action), id);
      if (!got.retryable) assert.notEqual(got.action, "retry", id);
    }
  });
}

test("a malformed line gets an error in its place, the others are judged, and the status is 1", () => {
  const text = [
    '{"status":500}',
    "{",
    "",
    "[]",
    '{"status":"429"}',
    '{"status":99}',
    "{}",
    '{"status":400,"protocol":"openai.chta"}',
    '{"status":400,"now":"yesterday"}',
    '{"status":400,"headers":7}',
    '{"status":429}',
  ].join("\r\n");
  const { status, lines } = classify(text);
  assert.equal(status, 1);
  assert.deepEqual(
    lines.map((line) => line.class ?? "error"),
    ["server_error", ...Array(8).fill("error"), "rate_limited"],
  );
  const messages = lines.filter((line) => line.error).map((line) => line.error);
  for (const [at, wanted] of [
    /^line 2: not JSON/,
    /^line 4: expected an object, got \[\]/,
    /^line 5: status: expected a whole number from 100 to 599, got "429"/,
    /^line 6: status: .*got 99/,
    /^line 7: there is neither a status nor an error/,
    /^line 8: protocol: expected one of openai\.chat,.*got "openai\.chta"/,
    /^line 9: now: expected a time such as "2026-11-30T00:00:00Z", got "yesterday"/,
    /^line 10: headers: expected an object, got 7/,
  ].entries()) {
    assert.match(messages[at], wanted);
  }
});

test("an endless line is bounded, costs its own answer alone, and what follows it is judged", async () => {
  const child = spawn(process.execPath, ["--max-old-space-size=64", CLI, "classify"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    out += text;
  });
  const part = "x".repeat(1024 * 1024);
  for (let n = 0; n < 96; n += 1) {
    if (!child.stdin.write(part)) await new Promise((resolve) => child.stdin.once("drain", resolve));
  }
  child.stdin.end('\n{"status":503}');
  const status = await new Promise((resolve) => child.on("close", resolve));
  const [long, next] = out.trim().split("\n").map(JSON.parse);
  assert.match(long.error, /^line 1: longer than \d+ bytes$/);
  assert.equal(next.class, "overloaded");
  assert.equal(status, 1);
});

test("a wait hint that is a date counts from now", () => {
  const one = { status: 429, headers: { "Retry-After": "Mon, 30 Nov 2026 00:00:30 GMT" } };
  assert.equal(verdict(one).wait_hint_ms, 30_000);
  assert.equal(verdict({ ...one, now: "2026-11-30T01:00:20+01:00" }).wait_hint_ms, 10_000);
});

test("headers come in any case, as text, number, list or pairs", () => {
  const hint = (headers) => verdict({ status: 429, headers }).wait_hint_ms;
  assert.equal(hint({ "RETRY-AFTER": "7" }), 7_000);
  assert.equal(hint({ "retry-after": 7 }), 7_000);
  assert.equal(hint({ "Retry-After": ["7", "9"] }), 7_000);
  assert.equal(hint([["retry-after", "7"]]), 7_000);
  assert.equal(hint(null), null);
});

test("the URL tells provider and protocol", () => {
  const url = "https://api.anthropic.com/v1/messages";
  const body = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
  assert.equal(verdict({ url, status: 529, body }).rule, "anthropic.overloaded");
  // An empty success is a failure where the protocol is known.
  assert.equal(verdict({ url, status: 200, body: "" }).class, "connection_error");
});

test("a body may be JSON that is parsed already", () => {
  const body = { error: { code: "insufficient_quota", message: "You exceeded your current quota" } };
  assert.equal(verdict({ provider: "openai", status: 429, body }).class, "quota_exhausted");
});

test("an error with its causes is judged without a status", () => {
  const error = { name: "TypeError", message: "fetch failed", cause: { name: "Error", code: "ECONNREFUSED" } };
  const { class: kind, rule, action } = verdict({ error });
  assert.deepEqual([kind, rule, action], ["connection_error", "transport.refused", "retry"]);
  const aborted = verdict({ error: { name: "AbortError", message: "This operation was aborted" } });
  assert.deepEqual([aborted.class, aborted.action], ["cancelled", "fail"]);
});

test("the action is what a keel does: retry, return, or fail once a part was delivered", () => {
  const action = (one) => verdict({ protocol: "openai.chat", ...one }).action;
  assert.equal(action({ status: 500 }), "retry");
  assert.equal(action({ status: 401 }), "return");
  // Longer than retry.maxWaitMs: the answer goes back, with the time to come again.
  assert.equal(action({ status: 429, headers: { "retry-after": "61" } }), "return");
  const failed = 'data: {"error":{"message":"down","type":"server_error"}}\n\n';
  const headers = { "content-type": "text/event-stream" };
  assert.equal(action({ stream: true, headers, body: failed }), "retry");
  const token = 'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n';
  assert.equal(action({ stream: true, headers, body: token + failed }), "fail");
  assert.equal(action({ stream: true, headers, body: token }), "fail");
});

test("rules of one's own come first, and a mistake in them is told before anything is read", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "evenkeel-cli-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "rules.json");
  writeFileSync(file, '[{"name":"wrapped","status":400,"text":"upstream failed","class":"server_error"}]');
  const input = [{ provider: "gw", status: 400, body: '{"error":{"message":"Upstream failed"}}' }];
  assert.equal(classify(input, "--rules", file).lines[0].rule, "gw.wrapped");
  writeFileSync(file, '[{"status":400}]');
  const wrong = classify(input, "--rules", file);
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /\[0\]\.class: expected an error class/);
  assert.deepEqual(wrong.lines, []);
  assert.match(classify(input, "--rules", join(folder, "none.json")).stderr, /none\.json: ENOENT/);
});

test("a reader that stops early, as head does, ends the program without an error", async () => {
  const child = spawn(process.execPath, [CLI, "classify"], { stdio: ["pipe", "pipe", "pipe"] });
  let problems = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    problems += text;
  });
  child.stdin.on("error", () => {}); // closed while we write
  child.stdout.once("data", () => child.stdout.destroy());
  child.stdin.end('{"status":500}\n'.repeat(20_000));
  const status = await new Promise((resolve) => child.on("exit", resolve));
  assert.equal(problems, "");
  assert.equal(status, 0);
});
