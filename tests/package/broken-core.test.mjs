// The wasm file missing, or not what it was, after a bundler's or a server's work: an error that says what to do, or
// requests that go out without a core. Each case runs in a Node of its own, since a core that is in stays in.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const DIST = fileURLToPath(new URL("../../pkg/dist/", import.meta.url));
const home = mkdtempSync(join(tmpdir(), "evenkeel-broken-"));
after(() => rmSync(home, { recursive: true, force: true }));
writeFileSync(join(home, "package.json"), '{ "type": "module" }\n');

/** What every message of a core that is no core ends in. */
const ADVICE =
  /^evenkeel: the WebAssembly core could not be loaded: .+\. Bundle and serve evenkeel's files as they were published, `core\.wasm` as bytes or a module\.$/s;

/** Runs module code in a fresh Node, which is ended if it hangs; gives the JSON that it prints. */
function inFreshNode(code) {
  const args = ["--input-type=module", "--eval", code];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", timeout: 20_000 }));
}

const at = (folder, file) => JSON.stringify(pathToFileURL(join(folder, file)).href);

/** A copy of the package's files of which one is changed. */
function changed(name, file, change) {
  const folder = join(home, name);
  cpSync(DIST, folder, { recursive: true });
  const path = join(folder, file);
  const before = readFileSync(path);
  const text = change(before);
  assert.notDeepEqual(Buffer.from(text), before, "nothing was changed");
  writeFileSync(path, text);
  return folder;
}

/** What a program sees that calls twice with that package, with `onCoreFailure` as it is by default and "pass-through". */
const callTwice = (folder, file, first = "") => `
  const { createKeel } = await import(${at(folder, file)});
  const seen = { messages: [], texts: [], notices: [] };
  ${first}
  const fetch = async () => new Response("went out");
  const url = "https://api.openai.com/v1/models";
  const strict = createKeel({ fetch });
  for (let i = 0; i < 2; i += 1) await strict.fetch(url).then(() => seen.messages.push("answered"), ({ message }) => seen.messages.push(message));
  try { strict.state(); } catch ({ message }) { seen.messages.push(message); }
  const open = createKeel({ fetch, onCoreFailure: "pass-through", ledger: (record) => void seen.notices.push(record.kind) });
  for (let i = 0; i < 2; i += 1) seen.texts.push(await (await open.fetch(url)).text());
  await open.flush();
  console.log(JSON.stringify(seen));`;

function checkRefusal({ messages, texts, notices }) {
  assert.equal(messages.length, 3);
  for (const message of messages) assert.match(message, ADVICE);
  assert.deepEqual(texts, ["went out", "went out"], "onCoreFailure: pass-through");
  assert.deepEqual(notices, ["core_missing"], "told once");
}

describe("the wasm is missing or is not a wasm, and the entry is slim", () => {
  const KINDS = {
    "an empty file": "new Uint8Array()",
    "a page in the file's place": 'new TextEncoder().encode("<!doctype html><title>404</title>")',
    "bytes of something else": "new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8])",
    "half of the file": "bytes.subarray(0, bytes.length >> 1)",
    "another wasm, as bytes": "OTHER",
    "another wasm, compiled": "new WebAssembly.Module(OTHER)",
    "nothing, as of a name that the bundler does not know": "undefined",
    "an address, as bundlers make of a file": '"/assets/core-4f2a.wasm"',
    "the module's namespace": "{ default: new WebAssembly.Module(bytes) }",
    "an answer that nobody has read": "new Response(bytes)",
    "a promise": "Promise.resolve(bytes)",
  };
  for (const [kind, argument] of Object.entries(KINDS)) {
    test(`install() given ${kind} says what to do, and takes the right one after it`, () => {
      const { message, cause, then } = inFreshNode(`
        import { readFileSync } from "node:fs";
        const { createKeel, install } = await import(${at(DIST, "slim.js")});
        const bytes = readFileSync(new URL(${at(DIST, "core.wasm")}));
        const OTHER = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
        const told = {};
        try { install(${argument}); } catch (error) { told.message = error.message; told.cause = error.cause instanceof Error; }
        install(bytes);
        const keel = createKeel({ fetch: async () => new Response("answered") });
        told.then = await (await keel.fetch("https://api.openai.com/v1/models")).text();
        console.log(JSON.stringify(told));`);
      assert.match(message, ADVICE);
      assert.equal(cause, true, "the host's own words are the cause");
      assert.equal(then, "answered");
    });
  }

  test("a core.wasm that was replaced: install() says so, calls that there is none, or they go out without one", () => {
    const folder = changed("replaced", "core.wasm", () => "<!doctype html><title>404</title>");
    const { messages, texts } = inFreshNode(
      callTwice(
        folder,
        "slim.js",
        `const { readFileSync } = await import("node:fs");
        const { install } = await import(${at(folder, "slim.js")});
        try { install(readFileSync(new URL(${at(folder, "core.wasm")}))); } catch ({ message }) { seen.messages.push(message); }`,
      ),
    );
    const [installing, ...calling] = messages;
    assert.match(installing, ADVICE);
    assert.equal(calling.length, 3);
    for (const message of calling) assert.match(message, /Call `install\(module\)`/);
    assert.deepEqual(texts, ["went out", "went out"]);
  });
});

describe("the wasm is missing or is not a wasm, and the host's bundler gives it as a module", () => {
  for (const entry of ["entry.workerd.js", "entry.edge-light.js"]) {
    for (const [kind, value] of Object.entries({
      "an address": '"/_next/static/media/core.4f2a.wasm"',
      "an empty object": "{}",
      nothing: "undefined",
      "another wasm": "new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))",
    })) {
      test(`${entry} given ${kind} by the bundler says what to do, or lets requests through`, () => {
        const name = `${entry}-${kind.replaceAll(" ", "-")}`;
        const folder = changed(name, entry, (code) =>
          String(code).replace(/import (\w+) from "[^"]+wasm[^"]*";/, `const $1 = ${value};`),
        );
        checkRefusal(inFreshNode(callTwice(folder, entry)));
      });
    }
  }
});

describe("the inlined text is damaged", () => {
  const TEXT = /(?<=(?:const|var|let) text = ")[^"]{1000,}(?=")/;
  const damages = {
    "cut off": (text) => text.slice(0, 50_000),
    "empty but for a letter": () => " ",
    "with other letters in it": (text) => `${text.slice(0, 5_000)}${"é".repeat(300)}${text.slice(5_300)}`,
    "with its spaces squeezed": (text) => text.replaceAll(/ +/g, " "),
    "longer than it was": (text) => text + text,
  };
  for (const [kind, damage] of Object.entries(damages)) {
    test(`${kind}: a call says what to do, or goes out without a core, and nothing hangs`, () => {
      const folder = changed(`inline-${kind.replaceAll(" ", "-")}`, "entry.inline.js", (code) =>
        String(code).replace(TEXT, damage),
      );
      checkRefusal(inFreshNode(callTwice(folder, "entry.inline.js")));
    });
  }

  test("with its decoder cut off: the same", () => {
    const folder = changed("inline-decoder", "entry.inline.js", (code) =>
      String(code).replace(/(decoder = ")([^"]+)"/, (_, head, text) => `${head}${text.slice(0, 200)}"`),
    );
    checkRefusal(inFreshNode(callTwice(folder, "entry.inline.js")));
  });
});
