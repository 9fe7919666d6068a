// Runs the code of pkg/README.md as a reader would: each block that is marked `<!-- test: FILE, HOST -->` is written to a
// file of that name beside the packed tarball, type-checked, and run where its host says. The last line is
// `N passed, M failed` (and `, K skipped`).

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { build } from "esbuild";
import { green, PKG, ROOT, red, runMain, Stop, say, yellow } from "../../scripts/lib/run.mjs";
import { binary, chromium, install, open, output, pack, serve } from "./lib/workshop.mjs";

const ANSWER = "Hello.";

/** The marked blocks: `{ file, host, code }`. */
function blocks() {
  const text = readFileSync(join(PKG, "README.md"), "utf8");
  const found = [...text.matchAll(/<!-- test: (\S+), (\w+) -->\n+```\w+\n([\s\S]*?)^```$/gm)];
  if (found.length !== text.split("<!-- test:").length - 1)
    throw new Stop("a marked block of pkg/README.md is not read");
  return found.map(([, file, host, code]) => ({ file, host, code }));
}

const version = (name) => JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies[name];

/** What a block prints or shows, by host. */
const HOSTS = {
  node: (folder, file, env) => output(process.execPath, [file], { cwd: folder, env }),
  deno: (folder, file, env) => {
    const args = ["run", "--no-prompt", "--allow-net=127.0.0.1", "--allow-env", file];
    return output(binary(folder, "deno"), args, { cwd: folder, env });
  },
  bun: (folder, file, env) => output(binary(folder, "bun"), [file], { cwd: folder, env }),
  browser: async (folder, file) => {
    await build({
      entryPoints: [join(folder, file)],
      outfile: join(folder, "site", "page.js"),
      bundle: true,
      format: "esm",
    });
    const page = '<!doctype html><output></output><script type="module" src="/page.js"></script>';
    writeFileSync(join(folder, "site", "index.html"), page);
    const server = await serve(join(folder, "site"));
    try {
      return await open(server.url);
    } finally {
      await server.close();
    }
  },
  workerd: async (folder, file, env) => {
    const out = join(folder, "worker");
    const conditions = ["workerd", "worker", "browser"];
    await build({
      entryPoints: [join(folder, file)],
      outdir: out,
      bundle: true,
      format: "esm",
      conditions,
      external: ["*.wasm"],
    });
    writeFileSync(join(out, "core.wasm"), readFileSync(join(folder, "node_modules", "evenkeel", "dist", "core.wasm")));
    const { Miniflare } = createRequire(join(folder, "package.json"))("miniflare");
    const miniflare = new Miniflare({
      modules: true,
      modulesRules: [
        { type: "ESModule", include: ["**/*.js"] },
        { type: "CompiledWasm", include: ["**/*.wasm"] },
      ],
      scriptPath: join(out, "worker.js"),
      modulesRoot: out,
      compatibilityDate: "2024-10-14", // the oldest that is supported
      bindings: env,
      handleRuntimeStdio: (stdout, stderr) => void [stdout.resume(), stderr.resume()],
    });
    try {
      return await (await miniflare.dispatchFetch("http://localhost/")).text();
    } finally {
      await miniflare.dispose();
    }
  },
};

const TSCONFIG = {
  compilerOptions: {
    target: "ES2022",
    module: "NodeNext",
    lib: ["ES2022", "DOM", "DOM.Iterable"],
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: true, // what the SDKs' own declarations need is theirs to say
  },
};

await runMain(async () => {
  const all = blocks();
  const manifest = {
    name: "evenkeel-readme",
    private: true,
    type: "module",
    dependencies: {
      evenkeel: undefined,
      "@anthropic-ai/sdk": version("@anthropic-ai/sdk"),
      "@types/node": version("@types/node"),
      bun: "1.4.5",
      deno: "2.9.6",
      miniflare: "4.20260426.0",
      openai: version("openai"),
    },
  };
  const folder = await install("readme", await pack(), { manifest });
  for (const { file, code } of all) writeFileSync(join(folder, file), code);
  const inCi = !["", "false"].includes(process.env.CI ?? "");
  const total = { passed: 0, failed: 0, skipped: 0 };
  const tell = (kind, what, detail = "") => {
    total[kind] += 1;
    const mark = { passed: green("✓"), failed: red("✗"), skipped: yellow("-") }[kind];
    say(`${mark} ${what}${detail}`);
  };

  // JavaScript is for people who don't declare types; everything else is checked as strictly as can be.
  const files = all.map(({ file }) => file).filter((file) => file.endsWith(".ts"));
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ ...TSCONFIG, files }));
  try {
    await output(process.execPath, [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", folder], {
      cwd: folder,
    });
    tell("passed", `${files.join(", ")}: the types are right`);
  } catch (error) {
    tell("failed", `types of ${files.join(", ")}\n${error.message}`);
  }

  const upstream = await serve();
  const env = {
    OPENAI_BASE_URL: `${upstream.url}/v1`,
    OPENAI_API_KEY: "sk-test",
    ANTHROPIC_BASE_URL: upstream.url,
    ANTHROPIC_API_KEY: "sk-test",
  };
  const runs = all.filter(({ host }) => Object.hasOwn(HOSTS, host));
  // "The first example as it is", says the part on Bun.
  runs.push({ ...runs[0], host: "bun" });
  for (const { file, host } of runs) {
    const what = `${file} in ${host}`;
    if (host === "browser" && chromium() === undefined) {
      tell(inCi ? "failed" : "skipped", `${what}: there is no Chromium`);
      continue;
    }
    try {
      const printed = await HOSTS[host](folder, file, env);
      // The first example's records go to standard error.
      const last = printed
        .split("\n")
        .filter((line) => !/^[ {}]/.test(line))
        .at(-1);
      if (last !== ANSWER) throw new Error(`printed ${printed}`);
      tell("passed", what);
    } catch (error) {
      tell("failed", what, `\n${error.message}`);
    }
  }
  await upstream.close();
  try {
    const program = join(folder, "node_modules", ".bin", "evenkeel");
    const said = await output(program, ["explain", "--status", "429", "--header", "retry-after: 7"], { cwd: folder });
    if (!said.startsWith("rate_limited")) throw new Error(said);
    tell("passed", "npx evenkeel explain");
  } catch (error) {
    tell("failed", "npx evenkeel explain", `\n${error.message}`);
  }
  if (existsSync(join(folder, "node_modules", "evenkeel", "README.md"))) tell("passed", "the README is in the tarball");
  else tell("failed", "the README is not in the tarball");
  if (total.failed > 0) process.exitCode = 1;
  say(`\n${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ""}`);
});
