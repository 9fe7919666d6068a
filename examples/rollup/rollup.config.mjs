import { nodeResolve } from "@rollup/plugin-node-resolve";

export default [
  {
    input: "src/browser.js",
    output: { file: "dist/browser.js", format: "es" },
    plugins: [nodeResolve({ browser: true })],
  },
  {
    input: "src/node.js",
    output: { file: "dist/node.mjs", format: "es" },
    plugins: [nodeResolve()],
  },
  {
    input: "src/node.js",
    output: { file: "dist/node.cjs", format: "cjs" },
    plugins: [nodeResolve()],
  },
];
