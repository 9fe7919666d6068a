import { resolve } from "node:path";

const path = resolve("dist");

export default [
  {
    mode: "production",
    target: "web",
    entry: "./src/browser.js",
    output: { path, filename: "browser.js" },
    // The core is inlined: 320 KB that compress to 133.
    performance: { hints: false },
  },
  {
    mode: "production",
    target: "node20",
    entry: "./src/node.js",
    output: { path, filename: "node.cjs" },
  },
];
