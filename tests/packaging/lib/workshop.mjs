// What the packaging tests share: the packed tarball, folders in which it is installed as a user installs it, an upstream
// that refuses the first attempt of every page or program, and a browser.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { ask, BUILD, environment, must, PKG, ROOT, run, Stop } from "../../../scripts/lib/run.mjs";

const HOME = join(BUILD, "packaging");
/** The same version as wherever else it is used. */
const PLAYWRIGHT = "1.65.1";

/** Packs the package as it is built now; gives the tarball's path. */
export async function pack() {
  const to = join(HOME, "tarball");
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  await must("npm pack", "npm", ["pack", "--silent", "--pack-destination", to], { cwd: PKG });
  const file = readdirSync(to).find((name) => name.endsWith(".tgz"));
  if (file === undefined) throw new Stop("npm pack left no tarball");
  return join(to, file);
}

/**
 * A folder with these sources, the tarball and the other packages that its package.json names. What was installed
 * before stays if it is of the right version; the tarball is always installed anew.
 */
export async function install(name, tarball, { from, manifest }) {
  const folder = join(HOME, name);
  mkdirSync(folder, { recursive: true });
  for (const entry of readdirSync(folder)) {
    if (entry !== "node_modules") rmSync(join(folder, entry), { recursive: true, force: true });
  }
  if (from !== undefined) {
    const skip = new Set(["node_modules", "dist", ".next", "package-lock.json"]);
    for (const entry of readdirSync(from)) {
      if (!skip.has(entry)) cpSync(join(from, entry), join(folder, entry), { recursive: true });
    }
  }
  const own = manifest ?? JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
  const version = JSON.parse(readFileSync(join(PKG, "package.json"), "utf8")).version;
  const wanted = own.dependencies.evenkeel;
  if (wanted !== undefined && wanted !== version)
    throw new Stop(`${name} wants evenkeel ${wanted}, this is ${version}`);
  own.dependencies.evenkeel = `file:${tarball}`;
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(own, null, 2)}\n`);
  rmSync(join(folder, "node_modules", "evenkeel"), { recursive: true, force: true });
  rmSync(join(folder, "node_modules", ".package-lock.json"), { force: true });
  // None of these packages needs its install script, and a test should run as little of others' code as it can.
  const flags = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await must(`npm install in ${name}`, "npm", ["install", ...flags, "--loglevel=error"], {
    cwd: folder,
    env: environment({ npm_config_workspaces: "false" }),
  });
  if (!existsSync(join(folder, "node_modules", "evenkeel", "package.json"))) {
    throw new Stop(`the tarball is not in ${folder}/node_modules`);
  }
  return folder;
}

/** The binary of a runtime that comes as an npm package for each platform, which needs no install script. */
export function binary(folder, name) {
  const machine = process.arch === "arm64" ? "arm64" : "x64";
  const paths =
    name === "deno"
      ? [`@deno/${process.platform}-${machine}-glibc/deno`, `@deno/${process.platform}-${machine}/deno`]
      : ["x64", "aarch64"].map((arch) => `@oven/bun-${process.platform}-${arch}/bin/bun`);
  const found = paths.map((path) => join(folder, "node_modules", path)).find((path) => existsSync(path));
  return found ?? join(folder, "node_modules", ".bin", name);
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".map": "application/json" };

/**
 * Serves a folder under a strict Content-Security-Policy (if one is given), and the paths of ANSWERS, where every
 * other `POST` is refused.
 */
export async function serve(folder) {
  let hits = 0;
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    if (request.method === "POST" && Object.hasOwn(ANSWERS, path)) {
      hits += 1;
      const refused = hits % 2 === 1;
      request.resume().on("end", () => {
        response.writeHead(refused ? 503 : 200, {
          "content-type": "application/json",
          ...(refused ? { "retry-after-ms": "1" } : {}),
        });
        response.end(JSON.stringify(refused ? { error: { message: "Overloaded" } } : ANSWERS[path]));
      });
      return;
    }
    const file = folder === undefined ? "" : join(folder, path === "/" ? "index.html" : path.slice(1));
    if (path.includes("..") || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
    });
    response.end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

/** What is answered, by path. */
const ANSWERS = {
  "/v1/chat/completions": {
    id: "chatcmpl-1",
    object: "chat.completion",
    model: "gpt-5",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
  },
  "/v1/messages": {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [{ type: "text", text: "Hello." }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 9, output_tokens: 2 },
  },
};

/** What every example prints: the answer of the second attempt. */
export const EXPECTED = JSON.stringify({ answer: "Hello.", attempts: 2 });

/** Chromium's path, or `undefined`. */
export function chromium() {
  return process.env.CHROMIUM ?? ask("sh", ["-c", "command -v chromium || command -v google-chrome"]);
}

/** Playwright's Chromium driver, from where it is installed, or installed apart from the workspace. */
async function driver() {
  const places = [ROOT, join(ROOT, "tests", "runtimes"), join(HOME, "playwright")];
  const found = () => {
    for (const place of places) {
      try {
        return createRequire(join(place, "package.json"))("playwright-core");
      } catch {
        // the next one
      }
    }
    return undefined;
  };
  const there = found();
  if (there !== undefined) return there.chromium;
  const folder = join(HOME, "playwright");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const flags = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  await must("npm install playwright-core", "npm", ["install", ...flags, `playwright-core@${PLAYWRIGHT}`], {
    cwd: folder,
    env: environment({ npm_config_workspaces: "false" }),
  });
  return found().chromium;
}

/** Opens a page and gives the text of its `<output>`; throws with what the page complained of. */
export async function open(url) {
  const browser = await (await driver()).launch({
    executablePath: chromium(),
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
  try {
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(url);
    const output = page.locator("output", { hasText: /./ });
    await output.waitFor({ timeout: 20_000 }).catch(() => {
      throw new Error(`the page shows nothing:\n${complaints.join("\n")}`);
    });
    return await output.textContent();
  } finally {
    await browser.close();
  }
}

/** Runs a program to its end; gives what it printed, or throws. */
export async function output(command, args, { cwd, env = {} }) {
  const done = await run(command, args, { cwd, env: environment(env, []) });
  if (done.code !== 0) throw new Error(`${command} ${args.join(" ")} ended with status ${done.code}:\n${done.output}`);
  return done.output.trim();
}
