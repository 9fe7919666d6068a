// Headless Chromium over playwright-core, and a server on 127.0.0.1 for the pages that it opens.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { binary, HERE } from "./tools.mjs";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** Starts Chromium; `close` it. */
export function launchChromium() {
  const { chromium } = createRequire(join(HERE, "package.json"))("playwright-core");
  return chromium.launch({ executablePath: binary("chromium"), args: FLAGS });
}

/**
 * Serves a folder. `pages` are HTML by path, each `{ html, csp? }`. Resolves to `{ url, close }`.
 *
 * @param {string} folder
 * @param {Record<string, { html: string, csp?: string }>} pages
 */
export async function serveFolder(folder, pages) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://127.0.0.1");
    const page = pages[pathname];
    if (page !== undefined) {
      response.writeHead(200, {
        "content-type": "text/html",
        ...(page.csp ? { "content-security-policy": page.csp } : {}),
      });
      response.end(page.html);
      return;
    }
    try {
      const body = readFileSync(join(folder, normalize(pathname)));
      response.writeHead(200, { "content-type": TYPES[extname(pathname)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A page that resolves evenkeel as its package.json says for the condition `browser`, and runs a module. */
export function pageFor(folder, code, nonce = "evenkeel") {
  const home = "/node_modules/evenkeel";
  const { exports } = JSON.parse(readFileSync(join(folder, home, "package.json"), "utf8"));
  const target = (entry) => entry.browser ?? entry.default;
  const imports = {};
  for (const subpath of [".", "./inline", "./testing", "./slim"]) {
    imports[`evenkeel${subpath.slice(1)}`] = `${home}/${target(exports[subpath]).slice(2)}`;
  }
  return `<!doctype html><meta charset="utf-8"><title>evenkeel</title>
<script type="importmap" nonce="${nonce}">${JSON.stringify({ imports })}</script>
<script type="module" nonce="${nonce}">${code}</script>`;
}
