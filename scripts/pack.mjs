// Packs the npm package and looks at the tarball as its users get it: only what is needed, everything that package.json
// points at, its size, then publint and attw. The tarball stays in build/pack for the tests that install it.

import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, posix } from "node:path";
import { BUILD, must, PKG, ROOT, runMain, Stop, say } from "./lib/run.mjs";

const BUDGET = 400_000; // bytes of the tarball
const EXPECTED = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE-(MIT|APACHE)$/,
  /^dist\/(?:[a-z0-9-]+\/)*[a-z0-9.-]+\.(?:js|d\.ts|wasm)$/,
];
const UNWANTED = [/\.map$/, /\.tsbuildinfo$/, /\.test\./];

await runMain(async () => {
  const out = join(BUILD, "pack");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const packed = JSON.parse(
    await must("npm pack", "npm", ["pack", "--json", "--silent", "--pack-destination", out], { cwd: PKG }),
  );
  const [{ files, size, filename }] = Array.isArray(packed) ? packed : Object.values(packed);
  const names = files.map((file) => file.path);
  const manifest = JSON.parse(readFileSync(join(PKG, "package.json"), "utf8"));

  const wrong = [
    ...names.filter((name) => !EXPECTED.some((rule) => rule.test(name))).map((name) => `${name} should not be in it`),
    ...names.filter((name) => UNWANTED.some((rule) => rule.test(name))).map((name) => `${name} should not be in it`),
    ...targets(manifest)
      .filter((name) => !names.includes(name))
      .map((name) => `package.json names ${name}, which is not in it`),
    ...["README.md", "LICENSE-MIT", "LICENSE-APACHE"]
      .filter((name) => !names.includes(name))
      .map((name) => `${name} is missing`),
    ...(size > BUDGET ? [`it has ${size} bytes, budget ${BUDGET}`] : []),
  ];
  say(`${filename}: ${names.length} files, ${(size / 1000).toFixed(1)} KB`);
  if (wrong.length > 0) throw new Stop(`the tarball is not as it should be:\n  ${wrong.join("\n  ")}`);

  const tarball = join(
    out,
    readdirSync(out).find((name) => name.endsWith(".tgz")),
  );
  const tool = (name, path) => join(ROOT, "node_modules", name, path);
  await must("publint", process.execPath, [tool("publint", "src/cli.js"), "run", PKG, "--strict", "--pack", "npm"], {
    show: true,
  });
  // ESM alone: Node 20.19 and newer `require` it. core.wasm is not JavaScript.
  const attw = [
    tool("@arethetypeswrong/cli", "dist/index.js"),
    tarball,
    "--profile",
    "esm-only",
    "--exclude-entrypoints",
    "core.wasm",
    "--no-emoji",
  ];
  await must("attw", process.execPath, attw, { show: true });
});

/** Every file that `exports` and `bin` point at, as paths inside the tarball. */
function targets(manifest) {
  const found = new Set();
  const walk = (value) => {
    if (typeof value === "string") found.add(posix.normalize(value));
    else for (const inner of Object.values(value ?? {})) walk(inner);
  };
  walk(manifest.exports);
  walk(manifest.bin);
  return [...found];
}
