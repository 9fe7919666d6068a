// Runs the call bench in other hosts: one bundle with everything in it, and the runtimes of tests/runtimes.

import { spawn } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { BUILD, environment, must, PKG, ROOT } from "../../scripts/lib/run.mjs";
import { binary } from "../../tests/runtimes/lib/tools.mjs";
import { interleaved } from "./measure.mjs";

const OUT = join(BUILD, "bench");
const ARGS = { deno: ["run", "--quiet", "--no-remote", "--allow-env"], bun: ["run"] };

/** Bundles an entry of this folder; the wasm stays a file where the host imports it. */
async function bundle(entry, conditions) {
  mkdirSync(OUT, { recursive: true });
  const outfile = join(OUT, `${entry}.${conditions[0] ?? "plain"}.mjs`);
  await build({
    entryPoints: [join(ROOT, "benches", "lib", `${entry}.mjs`)],
    outfile,
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: [...conditions, "import", "default"],
    external: ["*.wasm", "node:*"],
    target: "es2022",
    logLevel: "error",
  });
  return outfile;
}

/** Microseconds a call in a host that runs a program; `undefined` if the host is not installed. */
export async function callsIn(name) {
  const program = binary(name);
  if (program === undefined) return undefined;
  if (name === "workerd") return callsInWorkerd(program);
  const file = await bundle("call-print", []);
  const env = environment({ DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" });
  const output = await must(name, program, [...(ARGS[name] ?? []), file], { cwd: OUT, env });
  return JSON.parse(output.trimEnd().split("\n").at(-1) ?? "");
}

async function callsInWorkerd(program) {
  const file = await bundle("call-worker", ["workerd"]);
  cpSync(join(PKG, "dist", "core.wasm"), join(OUT, "core.wasm"));
  const port = await freePort();
  writeFileSync(
    join(OUT, "bench.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .bench)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const bench :Workerd.Worker = (
  modules = [
    (name = "main.mjs", esModule = embed "${file.split("/").at(-1)}"),
    (name = "core.wasm", wasm = embed "core.wasm"),
  ],
  compatibilityDate = "2026-11-01",
);
`,
  );
  const server = spawn(program, ["serve", "bench.capnp"], { cwd: OUT, stdio: ["ignore", "ignore", "inherit"] });
  try {
    const home = `http://127.0.0.1:${port}/`;
    const names = await (await untilUp(home)).json();
    const ask = (query) => fetch(`${home}?${query}`).then((response) => response.text());
    const contenders = Object.fromEntries(
      names.map((name) => [name, (calls) => ask(new URLSearchParams({ name, calls: String(calls) }))]),
    );
    return await interleaved(contenders, { calls: 1_000, warmUp: 1_000 });
  } finally {
    server.kill();
  }
}

async function untilUp(url) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await fetch(url);
    } catch (error) {
      if (tries > 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
