/** The page, built and served with its headers, and a browser to look at it with. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, createServer, preview } from "vite";
import { binary } from "../runtimes/lib/tools.mjs";

export const WWW = fileURLToPath(new URL("../../www", import.meta.url));

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Builds the page into a folder of its own and serves it; resolves to `{ url, close }`. */
export async function servePage() {
  const outDir = mkdtempSync(join(tmpdir(), "evenkeel-www-"));
  await build({ root: WWW, logLevel: "error", build: { outDir, emptyOutDir: true } });
  const server = await preview({
    root: WWW,
    logLevel: "error",
    build: { outDir },
    preview: { port: 0, host: "127.0.0.1" },
  });
  return {
    url: urlOf(server.httpServer),
    outDir,
    async close() {
      await server.close();
      rmSync(outDir, { recursive: true, force: true });
    },
  };
}

/** The dev server, as `npm run www` starts it. */
export async function serveSources() {
  const cacheDir = mkdtempSync(join(tmpdir(), "evenkeel-www-cache-"));
  const server = await createServer({
    root: WWW,
    cacheDir,
    logLevel: "error",
    server: { port: 0, host: "127.0.0.1" },
  });
  await server.listen();
  return {
    url: urlOf(server.httpServer),
    async close() {
      await server.close();
      rmSync(cacheDir, { recursive: true, force: true });
    },
  };
}

function urlOf(server) {
  return `http://127.0.0.1:${server.address().port}/`;
}

/** A browser with an empty profile. Playwright makes the folder and removes it. */
export function launch() {
  return chromium.launch({
    executablePath: binary("chromium"),
    headless: true,
    args: FLAGS,
    timeout: 60_000,
  });
}

/** A page that keeps everything that went wrong in it: console errors, exceptions, policy violations, foreign requests. */
export async function openPage(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1180, height: 860 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning")
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin)) complaints.push(`request to ${request.url()}`);
  });
  page.on("requestfailed", (request) => complaints.push(`failed request ${request.url()}`));
  await page.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => {
      globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await page.goto(url);
  return {
    page,
    context,
    /** Everything that went wrong so far. */
    async complaints() {
      return [...complaints, ...(await page.evaluate(() => globalThis.violations))];
    },
  };
}
