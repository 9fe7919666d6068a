// Starts workerd with one bundled worker: modules as wrangler would upload them, the wasm as a compiled module.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { binary, HERE } from "./tools.mjs";

/** The newest compatibility date that the installed workerd knows: the date in its version. */
export function latestDate() {
  const { version } = JSON.parse(readFileSync(join(HERE, "node_modules", "workerd", "package.json"), "utf8"));
  const [, year, month, day] = /^1\.(\d{4})(\d\d)(\d\d)\./.exec(version);
  return `${year}-${month}-${day}`;
}

/**
 * Bundles a worker as wrangler does: its conditions, and `.wasm` files left to the runtime. Gives the folder of the bundle.
 * With `inline` it is one that has its core in itself; `copies` of the package share one file, as those of wrangler do,
 * which names files by what is in them.
 */
export async function bundleWorker(folder, entry, { inline = false, copies = 1 } = {}) {
  const wasm = [];
  const leaveWasm = {
    name: "wasm",
    setup({ onResolve }) {
      onResolve({ filter: /\.wasm$/ }, ({ path, resolveDir }) => {
        wasm.push(join(resolveDir, path));
        return { path: "./core.wasm", external: true };
      });
    },
  };
  await build({
    entryPoints: [join(folder, entry)],
    outfile: join(folder, "bundle", "worker.mjs"),
    bundle: true,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    plugins: [leaveWasm],
    logLevel: "error",
  });
  if (wasm.length !== (inline ? 0 : copies)) throw new Error(`the bundle imports ${wasm.length} wasm modules`);
  const [core = join(folder, "node_modules", "evenkeel", "dist", "core.wasm")] = wasm;
  writeFileSync(join(folder, "bundle", "core.wasm"), readFileSync(core));
  return join(folder, "bundle");
}

/**
 * Serves a bundle. Resolves to `{ url, pid, output, stop }`.
 *
 * @param {string} folder Of the bundle.
 * @param {{ date: string, flags?: string[], durableObjects?: string[], tag?: string }} options
 */
export async function startWorkerd(folder, { date, flags = [], durableObjects = [] }) {
  const list = (items) => `[${items.join(", ")}]`;
  const classes = durableObjects.map((name) => `(className = "${name}", uniqueKey = "${name}-key")`);
  const bindings = durableObjects.map((name) => `(name = "${name}", durableObjectNamespace = "${name}")`);
  const config = join(folder, "config.capnp");
  writeFileSync(
    config,
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "internet", network = (allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs"), (name = "core.wasm", wasm = embed "core.wasm")],
  compatibilityDate = "${date}",
  compatibilityFlags = ${list(flags.map((flag) => `"${flag}"`))},
  bindings = ${list(bindings)},
  durableObjectNamespaces = ${list(classes)},
  ${classes.length > 0 ? "durableObjectStorage = (inMemory = void)," : ""}
);
`,
  );
  const child = spawn(binary("workerd"), ["serve", "--experimental", "--control-fd=3", config], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  }
  const port = await new Promise((resolve, reject) => {
    let told = "";
    child.stdio[3].setEncoding("utf8").on("data", (chunk) => {
      told += chunk;
      const found = /"event":"listen","socket":"http","port":(\d+)/.exec(told);
      if (found !== null) resolve(Number(found[1]));
    });
    child.on("error", reject);
    child.on("close", (code) => reject(new Error(`workerd ended with ${code}:\n${output.slice(-4_000)}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid,
    output: () => output,
    stop: () =>
      new Promise((resolve) => {
        child.removeAllListeners("close");
        child.on("close", resolve);
        child.kill("SIGKILL");
      }),
  };
}
