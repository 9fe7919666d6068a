// What only a browser shows: a Content-Security-Policy that forbids wasm, the main thread's limits, cancelled fetches.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "esbuild";
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

/** A bundle as a page or a worker has several: each with a copy of evenkeel, under a name of its own. */
const BUNDLE = `
  import { createKeel, KeelConfigError, KeelError } from "evenkeel";
  globalThis.bundles ??= [];
  globalThis.bundles.push({ createKeel, KeelConfigError, KeelError });`;
/** What two bundles in one global scope see of each other. */
const COMPARE = `
  (async () => {
    const [one, two] = globalThis.bundles;
    const options = { retry: { baseMs: 1, capMs: 2 }, timeouts: { minAttemptMs: 1 } };
    const ask = (keel) => keel.fetch("https://api.openai.com/v1/models");
    const answers = await Promise.all(
      [one, two, one, two].map(async ({ createKeel }, i) =>
        (await ask(createKeel({ ...options, fetch: async () => new Response("answer " + i) }))).text(),
      ),
    );
    const failing = one.createKeel({ ...options, fetch: async () => { throw new TypeError("Failed to fetch"); } });
    const error = await ask(failing).then(String, (thrown) => thrown);
    const { name, reason, retryable, attempts } = error;
    return {
      copies: globalThis.bundles.length,
      same: one.createKeel === two.createKeel,
      answers,
      error: { name, class: error.class, reason, retryable, attempts: attempts.length },
      own: error instanceof one.KeelError,
      others: error instanceof two.KeelError,
    };
  })()`;
const TWO = {
  copies: 2,
  same: false,
  answers: ["answer 0", "answer 1", "answer 2", "answer 3"],
  error: {
    name: "KeelError",
    class: "connection_error",
    reason: "attempts_exhausted",
    retryable: true,
    attempts: 3,
  },
  own: true,
  others: false,
};

async function writeBundles(folder) {
  for (const name of ["one", "two"]) {
    await build({
      stdin: { contents: BUNDLE, resolveDir: folder },
      outfile: join(folder, `bundle-${name}.js`),
      bundle: true,
      minify: true,
      format: "iife",
      conditions: ["browser"],
      logLevel: "error",
    });
  }
  writeFileSync(
    join(folder, "bundles-worker.js"),
    `importScripts("/bundle-one.js", "/bundle-two.js");\n${COMPARE}.then((seen) => postMessage(seen), (error) => postMessage(String(error)));\n`,
  );
}

describe("a page in Chromium", { timeout: 120_000 }, () => {
  let browser;
  let server;
  let provider;
  let folder;
  before(async () => {
    folder = await stage("browser");
    const html = pageFor(folder, CODE);
    await writeBundles(folder);
    const bundles = '<!doctype html><script src="/bundle-one.js"></script><script src="/bundle-two.js"></script>';
    server = await serveFolder(folder, {
      "/strict": { html, csp: STRICT },
      "/allowed": { html, csp: ALLOWED },
      "/none": { html },
      "/bundles": { html: bundles, csp: "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'" },
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

  test("a core above the main thread's limit: the refusal says to use a Web Worker, where it works", async () => {
    const page = await open("/none");
    // A section of no meaning makes it as large as Chromium refuses to compile at once.
    const grow = `async () => {
      const core = new Uint8Array(await (await fetch("/node_modules/evenkeel/dist/core.wasm")).arrayBuffer());
      const extra = 9 * 2 ** 20;
      const size = [0, 7, 14, 21].map((shift, i) => ((extra >> shift) & 127) | (i < 3 ? 128 : 0));
      const large = new Uint8Array(core.length + 5 + extra);
      large.set(core);
      large.set([0, ...size], core.length);
      return large;
    }`;
    const use = `async (bytes) => {
      const { createKeel, install } = await import("/node_modules/evenkeel/dist/slim.js");
      try { install(bytes); } catch (error) { return [error.message, error.cause.name]; }
      const keel = createKeel({ fetch: async () => new Response("answered") });
      return (await keel.fetch("https://api.openai.com/v1/models")).text();
    }`;
    const [inPage, inWorker] = await page.evaluate(`(async () => {
      const bytes = await (${grow})();
      const code = "self.onmessage = async ({ data }) => postMessage(await (" + ${JSON.stringify(use)}.replace('"/node', '"' + location.origin + '/node') + ")(data));";
      const worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })), { type: "module" });
      const inWorker = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
      worker.postMessage(bytes);
      return [await (${use})(bytes), await inWorker];
    })()`);
    const [message, cause] = inPage;
    assert.match(message, /could not be loaded: .*main thread.* Use evenkeel in a Web Worker\.$/s);
    assert.equal(cause, "RangeError");
    assert.equal(inWorker, "answered");
  });

  test('… and the main entry, refused so, says it by the first call, or lets requests through ("pass-through")', async () => {
    const page = await open("/none");
    const [messages, texts] = await page.evaluate(async () => {
      const refuse = () => {
        throw new RangeError(
          "WebAssembly.Compile is disallowed on the main thread, if the buffer size is larger than 4KB. " +
            "Use WebAssembly.compile, or compile on a worker thread.",
        );
      };
      WebAssembly.Module = new Proxy(WebAssembly.Module, { construct: refuse });
      const fetch = async () => new Response("went out");
      const ask = (options) =>
        window.evenkeel.createKeel({ fetch, ...options }).fetch("https://api.openai.com/v1/models");
      const messages = [];
      for (let i = 0; i < 2; i += 1) await ask({}).catch((error) => messages.push(error.message));
      return [messages, [await (await ask({ onCoreFailure: "pass-through" })).text()]];
    });
    assert.equal(messages.length, 2);
    for (const message of messages) assert.match(message, /main thread.* Use evenkeel in a Web Worker\.$/);
    assert.deepEqual(texts, ["went out"]);
  });

  test("two copies of the package: two bundles in one page work side by side, and their errors are recognisable", async () => {
    const page = await browser.newPage();
    await page.goto(`${server.url}/bundles`);
    assert.deepEqual(await page.evaluate(COMPARE), TWO);
  });

  test("… and two bundles in one Web Worker", async () => {
    const page = await browser.newPage();
    await page.goto(`${server.url}/bundles`);
    const seen = await page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker("/bundles-worker.js");
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
        }),
    );
    assert.deepEqual(seen, TWO);
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
