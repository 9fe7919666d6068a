import { defineConfig, type Plugin } from "vite";
import { DEV, HEADER_ONLY, PAGE } from "./csp.js";

/** Writes the policy into the page itself, so that it holds wherever the built files are put. */
function policy(content: string): Plugin {
  return {
    name: "content-security-policy",
    transformIndexHtml: {
      order: "post",
      handler: () => [
        { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content }, injectTo: "head-prepend" as const },
      ],
    },
  };
}

export default defineConfig(({ command }) => ({
  base: "./",
  plugins: [policy(command === "serve" ? DEV : PAGE)],
  server: { host: "127.0.0.1", headers: { "Content-Security-Policy": `${DEV}; ${HEADER_ONLY}` } },
  preview: { host: "127.0.0.1", headers: { "Content-Security-Policy": `${PAGE}; ${HEADER_ONLY}` } },
  build: {
    target: "es2022",
    // A data: URL or an inline script would need another policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The core is inlined in evenkeel's main entry, some 270 KB of text.
    chunkSizeWarningLimit: 700,
  },
}));
