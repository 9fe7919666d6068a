// Builds and runs each app under examples/ with the packed tarball, in a folder of its own.
//
//   node tests/packaging/examples.mjs [name …]     all, or those named
//
// What needs something that this machine lacks is skipped out loud; where CI is set a skip is a failure. The last line
// is `N passed, M failed` (and `, K skipped`).

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { dim, green, ROOT, red, runMain, Stop, say, yellow } from "../../scripts/lib/run.mjs";
import { binary, chromium, EXPECTED, install, open, output, pack, serve } from "./lib/workshop.mjs";

/** Steps of an example: `[what it shows, async (folder, upstream) => what was printed]`. */
const EXAMPLES = {
  node: [
    ["runs as an ES module", (folder, upstream) => node(folder, "main.mjs", upstream)],
    ["runs by require()", (folder, upstream) => node(folder, "main.cjs", upstream)],
  ],
  deno: [
    [
      "runs with no permission but the network's",
      (folder, upstream) => {
        const args = ["run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env=BASE_URL,OPENAI_API_KEY", "main.ts"];
        return output(binary(folder, "deno"), args, { cwd: folder, env: env(upstream) });
      },
    ],
  ],
  bun: [
    [
      "runs from source",
      (folder, upstream) => output(binary(folder, "bun"), ["main.ts"], { cwd: folder, env: env(upstream) }),
    ],
    [
      "runs compiled into one executable",
      async (folder, upstream) => {
        const args = ["build", "--compile", "--outfile", "dist/app", "main.ts"];
        await output(binary(folder, "bun"), args, { cwd: folder });
        return output(join(folder, "dist", "app"), [], { cwd: join(folder, "dist"), env: env(upstream) });
      },
    ],
  ],
  esbuild: [
    ["builds", build],
    ["runs in Node as an ES module", (folder, upstream) => node(folder, "dist/node.mjs", upstream)],
    ["runs in Node as CommonJS", (folder, upstream) => node(folder, "dist/node.cjs", upstream)],
    ["runs in Chromium", page],
  ],
  rollup: [
    ["builds", build],
    ["runs in Node as an ES module", (folder, upstream) => node(folder, "dist/node.mjs", upstream)],
    ["runs in Node as CommonJS", (folder, upstream) => node(folder, "dist/node.cjs", upstream)],
    ["runs in Chromium", page],
  ],
  webpack: [
    ["builds", build],
    ["runs in Node as CommonJS", (folder, upstream) => node(folder, "dist/node.cjs", upstream)],
    ["runs in Chromium", page],
  ],
  vite: [
    ["builds", build],
    ["runs in Chromium", (folder) => page(join(folder, "dist"))],
  ],
  workers: [
    ["is bundled by wrangler, with the wasm as a module", worker],
    ["runs in workerd", (folder, upstream) => workerd(folder, upstream)],
  ],
  vitest: [["its tests pass in Vitest", vitest]],
  "next-edge": [
    ["builds, with an edge route", build],
    ["runs in the edge sandbox of `next start`", nextStart],
  ],
};

/** Why a step can't run here, or `undefined`. */
function unmet(what) {
  return what.includes("Chromium") && chromium() === undefined
    ? "there is no Chromium (Debian: apt-get install chromium; or set CHROMIUM to its path)"
    : undefined;
}

const env = (upstream) => ({ BASE_URL: `${upstream}/v1`, OPENAI_API_KEY: "sk-test" });

function node(folder, file, upstream) {
  return output(process.execPath, [file], { cwd: folder, env: env(upstream) });
}

async function build(folder) {
  await output("npm", ["run", "--silent", "build"], {
    cwd: folder,
    env: { NEXT_TELEMETRY_DISABLED: "1", WRANGLER_SEND_METRICS: "false" },
  });
  return EXPECTED;
}

/** As `npm test` there does, but counted. */
async function vitest(folder) {
  const report = "report.json";
  const args = [
    join(folder, "node_modules", "vitest", "vitest.mjs"),
    "run",
    "--reporter=json",
    `--outputFile=${report}`,
  ];
  await output(process.execPath, args, { cwd: folder });
  const { numPassedTests, numTotalTests } = JSON.parse(readFileSync(join(folder, report), "utf8"));
  if (numTotalTests === 0 || numPassedTests !== numTotalTests)
    throw new Error(`${numPassedTests} of ${numTotalTests} tests passed`);
  return EXPECTED;
}

async function page(folder) {
  const server = await serve(folder);
  try {
    return await open(server.url);
  } finally {
    await server.close();
  }
}

async function nextStart(folder, upstream) {
  const port = await freePort();
  const args = [
    join(folder, "node_modules", "next", "dist", "bin", "next"),
    "start",
    "-H",
    "127.0.0.1",
    "-p",
    `${port}`,
  ];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...env(upstream), NEXT_TELEMETRY_DISABLED: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      log += text;
    });
  }
  try {
    for (const until = Date.now() + 30_000; Date.now() < until && child.exitCode === null; ) {
      const response = await fetch(`http://127.0.0.1:${port}/api/ask`).catch(() => undefined);
      if (response?.ok) return await response.text();
      if (response !== undefined) throw new Error(`status ${response.status}\n${log}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`next start does not answer\n${log}`);
  } finally {
    child.kill();
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

async function worker(folder) {
  await build(folder);
  const files = (await output("ls", ["dist"], { cwd: folder })).split("\n");
  if (!files.some((name) => name.endsWith("core.wasm"))) throw new Error(`no wasm module in dist: ${files.join(", ")}`);
  return EXPECTED;
}

/** The bundle in workerd, by wrangler's own Miniflare. */
async function workerd(folder, upstream) {
  const wrangler = createRequire(join(folder, "node_modules", "wrangler", "package.json"));
  const { Miniflare } = wrangler("miniflare");
  const miniflare = new Miniflare({
    modules: true,
    modulesRules: [
      { type: "ESModule", include: ["**/*.js"] },
      { type: "CompiledWasm", include: ["**/*.wasm"] },
    ],
    scriptPath: join(folder, "dist", "index.js"),
    modulesRoot: join(folder, "dist"),
    compatibilityDate: "2025-05-05",
    bindings: env(upstream),
  });
  try {
    const response = await miniflare.dispatchFetch("http://localhost/");
    return await response.text();
  } finally {
    await miniflare.dispose();
  }
}

await runMain(async () => {
  const names = process.argv.slice(2);
  for (const name of names) if (!Object.hasOwn(EXAMPLES, name)) throw new Stop(`there is no example ${name}`);
  const inCi = !["", "false"].includes(process.env.CI ?? "");
  const total = { passed: 0, failed: 0, skipped: 0 };
  const tarball = await pack();
  const upstream = await serve();
  for (const [name, steps] of Object.entries(EXAMPLES)) {
    if (names.length > 0 && !names.includes(name)) continue;
    let began = Date.now();
    let folder;
    try {
      folder = await install(name, tarball, { from: join(ROOT, "examples", name) });
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
      total.failed += steps.length;
      say(`${red("✗")} ${name}: ${error.message}`);
      continue;
    }
    for (const [what, step] of steps) {
      const why = unmet(what);
      if (why !== undefined) {
        total[inCi ? "failed" : "skipped"] += 1;
        say(`${inCi ? red("✗") : yellow("-")} ${name} ${what}: skipped, ${why}`);
        continue;
      }
      try {
        const printed = await step(folder, upstream.url);
        if (printed !== EXPECTED) throw new Error(`printed ${printed}\ninstead of ${EXPECTED}`);
        total.passed += 1;
        say(`${green("✓")} ${name} ${what} ${dim(`(${((Date.now() - began) / 1000).toFixed(1)} s)`)}`);
      } catch (error) {
        total.failed += 1;
        say(`${red("✗")} ${name} ${what}\n${error.message}`);
      }
      began = Date.now();
    }
  }
  await upstream.close();
  if (total.failed > 0) process.exitCode = 1;
  say(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
});
