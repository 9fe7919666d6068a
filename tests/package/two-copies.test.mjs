// Two copies of the package in one program, as two dependencies bring them along, or two bundles. (In a page:
// tests/runtimes/browser.test.mjs; in a Worker: worker-loading.test.mjs.)

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const PKG = fileURLToPath(new URL("../../pkg/", import.meta.url));
const URL_OF_CHAT = "https://api.openai.com/v1/chat/completions";
const home = mkdtempSync(join(tmpdir(), "evenkeel-two-"));
after(() => rmSync(home, { recursive: true, force: true }));

/** The package as it is installed for one of a program's dependencies. */
async function copyFor(dependency) {
  const folder = join(home, "node_modules", dependency, "node_modules", "evenkeel");
  mkdirSync(folder, { recursive: true });
  for (const part of ["package.json", "dist"]) cpSync(join(PKG, part), join(folder, part), { recursive: true });
  const load = (file) => import(pathToFileURL(join(folder, "dist", file)).href);
  return { ...(await load("entry.inline.js")), testing: await load("testing.js") };
}

const one = await copyFor("one");
const two = await copyFor("two");
const chat = (fetch, content = "hello") =>
  fetch(URL_OF_CHAT, {
    method: "POST",
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content }] }),
  });

/** A keel of a copy over a script, and the records that it wrote. */
function rig({ createKeel, testing: { fakeClock, scriptedUpstream } }, script, options = {}) {
  const clock = fakeClock();
  const upstream = scriptedUpstream(script, { clock });
  const records = [];
  const keel = createKeel({
    fetch: upstream.fetch,
    clock,
    seed: 1,
    ledger: (record) => void records.push(record),
    ...options,
  });
  return { keel, clock, upstream, records };
}

describe("two copies of the package in one program", () => {
  test("they are two, and both call, at the same time too", async () => {
    assert.notEqual(one.createKeel, two.createKeel);
    const rigs = [one, two].map((copy) => {
      const { openai } = copy.testing;
      return rig(
        copy,
        Array.from({ length: 20 }, (_, i) => (i < 10 ? openai.overloaded() : openai.chat("fine"))),
        {
          retry: { budget: false },
          breaker: false,
        },
      );
    });
    const texts = await Promise.all(
      rigs.map(({ keel, clock }) =>
        clock.run(() => Promise.all(Array.from({ length: 10 }, async () => (await chat(keel.fetch)).json()))),
      ),
    );
    for (const answers of texts)
      assert.deepEqual(
        answers.map(({ choices }) => choices[0].message.content),
        Array(10).fill("fine"),
      );
    const [first, second] = rigs.map(({ records }) => records.filter(({ type }) => type === "call").length);
    assert.deepEqual([first, second], [10, 10], "each wrote its own");
  });

  test("an error of one is recognised by the users of the other: by its name and members, though not by instanceof", async () => {
    const { keel, clock } = rig(one, () => ({ fail: "refused" }));
    const error = await clock.run(() => chat(keel.fetch)).catch((thrown) => thrown);
    assert.ok(error instanceof one.KeelError);
    assert.equal(error instanceof two.KeelError, false, "a class of each copy");
    assert.ok(error instanceof Error);
    assert.equal(error.name, "KeelError");
    assert.deepEqual(
      [error.class, error.reason, error.retryable, error.attempts.length, typeof error.logicalRequestId],
      ["connection_error", "attempts_exhausted", true, 3, "string"],
    );
    assert.ok("retryAt" in error && "retryAfterMs" in error);
    assert.throws(
      () => one.createKeel({ retry: { baseMs: -1 } }),
      (wrong) =>
        !(wrong instanceof two.KeelConfigError) && wrong.name === "KeelConfigError" && wrong.path === "retry.baseMs",
    );
  });

  test("what one has learnt of a provider is not the other's: no state is shared", async () => {
    const failing = rig(one, () => one.testing.openai.rateLimited(60), { retry: { maxAttempts: 1 } });
    await failing.clock.run(() => chat(failing.keel.fetch));
    assert.notDeepEqual(failing.keel.state().buckets, []);
    const fine = rig(two, [two.testing.openai.chat("fine")]);
    assert.deepEqual(fine.keel.state().buckets ?? [], []);
    assert.equal((await fine.clock.run(() => chat(fine.keel.fetch))).status, 200);
    assert.equal(fine.records.filter(({ type }) => type === "attempt").length, 1, "sent at once");
  });

  test("the keel of one over the fetch of the other hands answers and errors through", async () => {
    const inner = rig(one, [
      one.testing.openai.overloaded(),
      one.testing.openai.chat("fine"),
      one.testing.openai.chatStream("one two"),
    ]);
    const outer = two.createKeel({ fetch: inner.keel.fetch, clock: inner.clock, seed: 1 });
    const answer = await inner.clock.run(async () => (await chat(outer.fetch)).json());
    assert.equal(answer.choices[0].message.content, "fine");
    const text = await inner.clock.run(async () => {
      const body = JSON.stringify({ model: "gpt-5", stream: true, messages: [] });
      return (await outer.fetch(URL_OF_CHAT, { method: "POST", body })).text();
    });
    assert.match(text, /one[\s\S]*two[\s\S]*\[DONE\]/);
    const failing = rig(one, () => ({ fail: "refused" }));
    const over = two.createKeel({
      fetch: failing.keel.fetch,
      clock: failing.clock,
      seed: 1,
      retry: { maxAttempts: 1 },
    });
    const error = await failing.clock.run(() => chat(over.fetch)).catch((thrown) => thrown);
    assert.ok(error instanceof two.KeelError);
    assert.deepEqual([error.class, error.reason], ["connection_error", "attempts_exhausted"]);
    assert.equal(error.cause.name, "KeelError");
  });

  test("both installed as the global fetch, one over the other, end at the host's, each call once", async () => {
    const own = globalThis.fetch;
    const calls = [];
    globalThis.fetch = async (input) => {
      calls.push(String(input));
      return new Response("host");
    };
    try {
      const first = one.createKeel();
      globalThis.fetch = first.fetch;
      const second = two.createKeel();
      globalThis.fetch = second.fetch;
      assert.equal(await (await fetch(URL_OF_CHAT)).text(), "host");
      assert.equal(await (await first.fetch(URL_OF_CHAT)).text(), "host");
      assert.equal(await (await second.fetch(URL_OF_CHAT)).text(), "host");
      assert.deepEqual(calls, [URL_OF_CHAT, URL_OF_CHAT, URL_OF_CHAT]);
    } finally {
      globalThis.fetch = own;
    }
  });
});
