// What only a browser shows: a Content-Security-Policy that forbids wasm, the main thread's limits, cancelled fetches.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { launchChromium, pageFor, serveFolder } from "./lib/chromium.mjs";
import { startProvider } from "./lib/provider.mjs";
import { stage } from "./lib/tools.mjs";

const STRICT = "default-src 'none'; script-src 'self' 'nonce-evenkeel'; connect-src *";
const ALLOWED = "default-src 'none'; script-src 'self' 'nonce-evenkeel' 'wasm-unsafe-eval'; connect-src *";
const CODE = `
  import * as lib from "evenkeel";
  import * as inline from "evenkeel/inline";
  import * as slim from "evenkeel/slim";
  import * as testing from "evenkeel/testing";
  window.evenkeel = { ...lib, same: inline.createKeel === lib.createKeel && slim.createKeel === lib.createKeel, testing };`;

describe("a page in Chromium", { timeout: 120_000 }, () => {
  let browser;
  let server;
  let provider;
  let folder;
  before(async () => {
    folder = await stage("browser");
    const html = pageFor(folder, CODE);
    server = await serveFolder(folder, {
      "/strict": { html, csp: STRICT },
      "/allowed": { html, csp: ALLOWED },
      "/none": { html },
    });
    provider = await startProvider();
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await server?.close();
    await provider?.close();
  });

  /** Opens a page and gives it once its module has run. */
  async function open(path) {
    const page = await browser.newPage();
    await page.goto(`${server.url}${path}`);
    await page.waitForFunction(() => window.evenkeel !== undefined, undefined, { timeout: 20_000 });
    return page;
  }

  test("a Content-Security-Policy without wasm-unsafe-eval: importing works, a call says what to add", async () => {
    const page = await open("/strict");
    const message = await page.evaluate(async () => {
      const keel = window.evenkeel.createKeel();
      return keel.fetch("https://api.openai.com/v1/models").then(String, (error) => error.message);
    });
    assert.match(message, /Content-Security-Policy forbids WebAssembly. Add 'wasm-unsafe-eval' to its script-src/);
  });

  test('… and with onCoreFailure "pass-through" requests go out without it', async () => {
    const page = await open("/strict");
    const [text, notices] = await page.evaluate(async () => {
      const notices = [];
      const keel = window.evenkeel.createKeel({
        fetch: async () => new Response("plain"),
        onCoreFailure: "pass-through",
        ledger: (record) => void notices.push(record.kind),
      });
      const response = await keel.fetch("https://api.openai.com/v1/models");
      await keel.fetch("https://api.openai.com/v1/models");
      return [await response.text(), notices];
    });
    assert.deepEqual([text, notices], ["plain", ["core_missing"]]);
  });

  test("the core compiles and starts on the main thread, synchronously, whatever its size today", async () => {
    const { length } = readFileSync(join(folder, "node_modules/evenkeel/dist/core.wasm"));
    const page = await open("/allowed");
    const status = await page.evaluate(async () => {
      const keel = window.evenkeel.createKeel({ fetch: async () => new Response("{}") });
      return (await keel.fetch("https://api.openai.com/v1/models")).status;
    });
    assert.equal(status, 200, `${length} bytes`);
    assert.ok(length < 8_000_000, "Chromium's limit");
  });

  test("the entries give one and the same module", async () => {
    const page = await open("/allowed");
    assert.equal(await page.evaluate(() => window.evenkeel.same), true);
  });

  test("a stream over real HTTP comes whole, and one that is given up ends at the provider", async () => {
    const page = await open("/allowed");
    const got = await page.evaluate(async (url) => {
      const records = [];
      const keel = window.evenkeel.createKeel({
        ledger: (record) => void records.push(record.status),
        providers: { own: { match: [new URL(url).host], protocol: "openai.chat" } },
      });
      const ask = (kind) =>
        keel.fetch(`${url}/v1/chat/completions?kind=${kind}`, {
          method: "POST",
          body: JSON.stringify({ model: "gpt-5", stream: true, messages: [{ role: "user", content: "hello" }] }),
        });
      const whole = await (await ask("stream")).text();
      await (await ask("slow-stream")).body.cancel();
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { whole, records };
    }, provider.url);
    assert.match(got.whole, /hello:[\s\S]*\[DONE\]\n\n$/);
    assert.deepEqual(got.records, ["succeeded", "succeeded", "cancelled", "cancelled"]);
  });

  test("a provider that refuses the connection is tried again, in Chromium's own words", async () => {
    const page = await open("/none");
    const error = await page.evaluate(async () => {
      const keel = window.evenkeel.createKeel({ retry: { baseMs: 1, capMs: 2 }, timeouts: { minAttemptMs: 1 } });
      return keel
        .fetch("http://127.0.0.1:1/v1/models")
        .then(String, ({ name, class: what, attempts }) => [name, what, attempts.length]);
    });
    assert.deepEqual(error, ["KeelError", "connection_error", 3]);
  });
});
