import { build } from "esbuild";

const common = { bundle: true, minify: true, logLevel: "warning" };

await build({ ...common, entryPoints: ["src/browser.js"], outfile: "dist/browser.js", format: "esm" });
await build({ ...common, entryPoints: ["src/node.js"], outfile: "dist/node.mjs", platform: "node", format: "esm" });
await build({ ...common, entryPoints: ["src/node.js"], outfile: "dist/node.cjs", platform: "node", format: "cjs" });
