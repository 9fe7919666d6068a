// `evenkeel explain` as a person uses it: what is pasted, what is said, and what a misuse is answered with.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const CLI = fileURLToPath(new URL("../../pkg/dist/cli.js", import.meta.url));

function run(args, input = "") {
  return spawnSync(process.execPath, [CLI, ...args], { input, encoding: "utf8" });
}

/** What is said, in one line. */
function explain(args, input) {
  const { status, stdout, stderr } = run(["explain", ...args], input);
  assert.equal(stderr, "");
  assert.equal(status, 0);
  return stdout.replace(/\s+/g, " ");
}

const QUOTA = '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}';

test("an answer given by flags is told with class, reason, rule, source, plan and advice", () => {
  const said = explain(["--status", "429", "--header", "retry-after: 7", "--provider", "openai", "--body", QUOTA]);
  assert.match(said, /^quota_exhausted \(insufficient_quota\) /);
  assert.match(said, /rule openai\.insufficient_quota: 402, 403, 429; code `insufficient_quota`/);
  assert.match(said, /Source \S+\.\S+/);
  assert.match(said, /evenkeel sends nothing again/);
  assert.match(said, /You Pay, ask for quota/);
});

test("a hint within reason is waited for, one beyond it is not", () => {
  const hint = (seconds) => explain(["--status", "429", "--header", `Retry-After: ${seconds}`]);
  assert.match(hint(7), /Wait hint 7 s evenkeel sends the request again after 7 s/);
  assert.match(hint(300), /Wait hint 5 min evenkeel does not wait that long \(retry\.maxWaitMs is 60 s\)/);
});

test("the answer of curl -i is taken from standard input, the last one if there are several", () => {
  const answer = [
    "HTTP/1.1 200 Connection established",
    "",
    "HTTP/1.1 100 Continue",
    "",
    "HTTP/2 429 ",
    "Content-Type: application/json",
    "Retry-After: 12",
    "",
    '{"error":{"message":"HTTP/1.1 500 is quoted","type":"tokens"}}',
  ].join("\r\n");
  assert.match(explain([], answer), /^rate_limited .*Wait hint 12 s/);
});

test("curl -v is understood too", () => {
  const answer = [
    "* Connected to api.openai.com",
    "> POST /v1/chat/completions HTTP/2",
    "> authorization: Bearer x",
    "< HTTP/2 503 ",
    "< retry-after: 3",
    "< ",
    "{ [120 bytes data]",
    "upstream connect error",
    "* Connection #0 left intact",
  ].join("\n");
  assert.match(explain([], answer), /^(overloaded|server_error|connection_error) .*Wait hint 3 s/);
});

test("a body alone, an SDK's error line and a transport's error are understood", () => {
  assert.match(explain(["--provider", "openai"], QUOTA), /^quota_exhausted .*judged by the body alone/);
  const sdk = `RateLimitError: 429 ${QUOTA}`;
  assert.match(explain(["--provider", "openai"], sdk), /^quota_exhausted /);
  assert.match(explain(["--provider", "openai"], "429 Rate limit reached for requests"), /^rate_limited /);
  const refused = "TypeError: fetch failed\n  cause: Error: connect ECONNREFUSED 127.0.0.1:11434";
  assert.match(explain([], refused), /^connection_error \(refused\) .*You Check the network/);
  const stream = 'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\ndata: {"error":{"message":"down"}}\n\n';
  assert.match(explain(["--protocol", "openai.chat"], stream), /a part of the answer has reached the caller/);
});

test("a success is said to be one", () => {
  const body = '{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}';
  assert.match(explain(["--status", "200", "--body", body]), /^no failure What This is a success\./);
});

test("help is on standard output; a misuse is a sentence on standard error and status 2", () => {
  for (const args of [["--help"], ["classify", "--help"], ["explain", "-h"]]) {
    const { status, stdout, stderr } = run(args);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^usage: evenkeel /);
  }
  for (const [args, message] of [
    [[], /^usage: evenkeel <command>/],
    [["clasify"], /there is no command "clasify"/],
    [["toString"], /there is no command "toString"/],
    [["classify", "--what"], /evenkeel classify: Unknown option '--what'\n/],
    [["classify", "file.jsonl"], /Unexpected argument 'file\.jsonl'/],
    [["explain", "--status"], /argument missing/],
    [["explain", "--status", "42"], /--status: expected a number from 100 to 599, got "42"/],
    [["explain", "--status", "429", "--header", "x"], /--header: expected 'name: value', got "x"/],
    [["explain", "--status", "429", "--protocol", "x"], /--protocol: expected one of openai\.chat, /],
    [["explain", "--status", "429", "--body", "@/nowhere"], /--body @\/nowhere: ENOENT/],
    [["explain"], /there is nothing to explain on standard input/],
  ]) {
    const { status, stdout, stderr } = run(args);
    assert.equal(status, 2, args.join(" "));
    assert.equal(stdout, "", args.join(" "));
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /\n {4}at /, "a stack trace is no message");
  }
});

test("a provider that there is not is a misuse that names those there are", () => {
  const { status, stderr } = run(["explain", "--status", "500", "--provider", "nope"]);
  assert.equal(status, 2);
  assert.match(stderr, /--provider: there is no provider "nope"; there are anthropic, .*openai, .*xai/);
  assert.equal(run(["explain", "--status", "500", "--provider", " OpenAI "]).status, 0);
});

test("a URL that is none is a misuse", () => {
  const { status, stderr } = run(["explain", "--status", "500", "--url", "api.openai.com/v1"]);
  assert.equal(status, 2);
  assert.match(stderr, /--url: expected an absolute URL, got "api\.openai\.com\/v1"/);
});

test("what is no text is not explained as if it were", () => {
  const head = Buffer.from("HTTP/1.1 500 Oh\r\ncontent-encoding: gzip\r\n\r\n");
  const compressed = run(["explain"], Buffer.concat([head, gzipSync('{"error":{}}')]));
  assert.equal(compressed.status, 2);
  assert.match(compressed.stderr, /compressed; curl decompresses with --compressed/);
  const binary = run(["explain"], Buffer.from([0, 1, 2, 255, 0, 10]));
  assert.equal(binary.status, 2);
  assert.match(binary.stderr, /standard input is not text/);
});

test("the version is the package's", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../pkg/package.json", import.meta.url), "utf8"));
  for (const name of ["--version", "-v", "version"]) {
    const { status, stdout, stderr } = run([name]);
    assert.deepEqual([status, stdout, stderr], [0, `${version}\n`, ""]);
  }
});
