// keel.state(): real states are what their type says, to the member; and each keel has its own.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { createKeel } from "evenkeel";
import ts from "typescript";

const CHAT = "https://api.openai.com/v1/chat/completions";
const HERE = dirname(fileURLToPath(import.meta.url));

/** What the compiler says of a value that is written down as a `ControlState`; empty if it is one, and nothing more. */
function complaints(state) {
  const name = join(HERE, "a-state.ts");
  const text = `import type { ControlState } from "evenkeel";\nexport const state: ControlState = ${state};\n`;
  const options = {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2022.d.ts", "lib.dom.d.ts"],
    types: [],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (file) => file === name || fileExists(file);
  host.readFile = (file) => (file === name ? text : readFile(file));
  host.getSourceFile = (file, ...rest) =>
    file === name ? ts.createSourceFile(file, text, ts.ScriptTarget.ES2022) : getSourceFile(file, ...rest);
  const program = ts.createProgram([name], options, host);
  return ts.getPreEmitDiagnostics(program).map((one) => ts.flattenDiagnosticMessageText(one.messageText, " "));
}

/** A keel that has seen something of everything. */
async function eventful() {
  const headers = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "29000",
    "x-ratelimit-reset-tokens": "2s",
  };
  const stream = 'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
  const fail = (status, error, more = {}) => Response.json({ error: { message: "no", ...error } }, { status, ...more });
  const keel = createKeel({
    fetch: async (_url, init) => {
      const { model } = JSON.parse(init.body);
      if (model === "slow") return fail(429, { code: "rate_limit_exceeded" }, { headers: { "retry-after": "30" } });
      if (model === "down") return fail(500, { type: "server_error" });
      if (model === "locked") return fail(401, { code: "invalid_api_key" });
      if (model === "told") return Response.json({ choices: [{ finish_reason: "stop" }] }, { headers });
      return new Response(stream, { headers: { "content-type": "text/event-stream" } });
    },
    retry: { maxAttempts: 1 },
    concurrency: { max: 50 },
    tenants: { acme: { concurrency: 5 } },
    pools: [
      { provider: "openai", organisation: "main", keys: [{ id: "m1", value: "sk-1" }], preflight: true },
      { provider: "openai", organisation: "spare", keys: [{ id: "s1", value: "sk-2" }] },
    ],
  });
  const acme = keel.with({ tenant: "acme" });
  // It leaves no time to wait until a pool that has failed no longer cools.
  const hurried = keel.with({ tenant: "acme", deadlineMs: 1_500 });
  for (const model of [...Array(24).fill("fine"), "told", "told", ...Array(8).fill("down"), "slow", "locked"]) {
    const init = { method: "POST", body: JSON.stringify({ model, stream: model === "fine" }) };
    await (model === "down" ? hurried : acme).fetch(CHAT, init).then(
      (response) => response.text(),
      () => "",
    );
  }
  return keel;
}

describe("keel.state()", () => {
  it("is what its type says, of a keel that has seen nothing and of one that has seen everything", async () => {
    const keel = await eventful();
    const state = keel.state();
    assert.deepEqual(complaints(JSON.stringify(createKeel().state())), []);
    assert.deepEqual(complaints(JSON.stringify(state)), []);
    // It would not say much of members that are all empty.
    assert.ok(state.vendor.some((bucket) => bucket.limits.length > 0 && bucket.limits[0].reset_at !== null));
    assert.ok(state.vendor.some((bucket) => bucket.cooling_until !== null && bucket.cooling_class !== null));
    assert.ok(state.vendor.some((bucket) => bucket.first_token_ms !== null));
    assert.ok(state.vendor.some((bucket) => bucket.preflight === "passed"));
    assert.ok(state.vendor.some((bucket) => bucket.last_429_at !== null));
    assert.ok(state.breakers.length > 0 && state.keys.some((key) => key.disabled === "auth_error"));
    assert.ok(state.tenants.some((tenant) => tenant.tenant === "acme"));
  });

  it("has a type that knows each member: one more or one less is told", () => {
    const state = createKeel({
      pools: [{ provider: "openai", organisation: "o", keys: [{ id: "k", value: "v" }] }],
    }).state();
    assert.match(String(complaints(JSON.stringify({ ...state, surprise: 1 }))), /"surprise"' does not exist/);
    const { permits, ...less } = state;
    assert.equal(permits.held, 0);
    assert.match(String(complaints(JSON.stringify(less))), /'permits' is missing/);
    const [key] = state.keys;
    assert.match(
      String(complaints(JSON.stringify({ ...state, keys: [{ ...key, value: "v" }] }))),
      /"value"' does not exist/,
    );
  });

  it("is plain JSON, taken at that moment", async () => {
    const keel = await eventful();
    const state = keel.state();
    assert.deepEqual(JSON.parse(JSON.stringify(state)), state);
    const given = state.permits.given;
    await keel.fetch(CHAT, { method: "POST", body: '{"model":"told"}' });
    assert.equal(state.permits.given, given);
    assert.ok(keel.state().permits.given > given);
  });
});
