// Puts the package's JavaScript around a built core: pkg/dist, or a whole package around another core than the one that
// ships.
//
// `main.js` holds what the entries share; every entry is one more file. So a program reads two modules, and two entries in
// one program share one core.

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { build, transform } from "esbuild";
import { foldGlue } from "./glue.mjs";
import { INLINE_TYPES, inlineSource } from "./inline.mjs";
import { BUILD, DIST, filesUnder, PKG, ROOT, Stop } from "./run.mjs";

const SRC = join(PKG, "src");
const source = (name) => join(SRC, `${name}.ts`);
const ENTRIES = ["entry.inline", "entry.workerd", "entry.edge-light", "slim", "testing", "cli"].map(source);
/** Only says what is public: an entry has it in itself, so that it exports no more than that. */
const PUBLIC = source("index");

/** What tests and benchmarks ask of the inside, in a package that is open. */
const INSIDE = `export { readOptions } from "./config.js";
export { Core, initSync } from "./core.js";
export { coreGeneration } from "./load.js";
`;
const INSIDE_ENTRY = `export { Core, coreGeneration, initSync, readOptions } from "./main.js";
export { judge } from "./cli/case.js";
`;

/** Declarations of generated files, for the compiler: pkg/tsconfig.json makes them siblings of the sources. */
export function writeTypes(core) {
  const to = join(BUILD, "types");
  mkdirSync(to, { recursive: true });
  cpSync(join(core, "core.d.ts"), join(to, "core.d.ts"));
  writeFileSync(join(to, "core.inline.d.ts"), INLINE_TYPES);
}

/** Puts the core of the folder `core` and the bundled entries around it into `dist`; `open`: with `inside.js`. */
export async function bundle(core, dist, { open = false } = {}) {
  mkdirSync(dist, { recursive: true });
  cpSync(join(core, "core.wasm"), join(dist, "core.wasm"));
  const outputOf = async (entryPoints, shared) => {
    const { metafile, outputFiles } = await build({
      entryPoints: entryPoints.map((file) => ({ in: file, out: basename(file, ".ts") })),
      outdir: dist,
      absWorkingDir: ROOT,
      bundle: true,
      format: "esm",
      platform: "neutral",
      target: "es2022",
      external: ["node:*"],
      plugins: [parts({ core, shared, open })],
      metafile: true,
      write: false,
      legalComments: "none",
      logLevel: "warning",
    });
    for (const { path, text } of outputFiles) writeFileSync(path, await readable(text));
    return metafile;
  };
  const main = await outputOf([source("main")], new Set());
  const shared = new Set(Object.keys(main.inputs).map((path) => resolve(ROOT, path)));
  shared.delete(PUBLIC);
  checkNames(main, await outputOf(open ? [...ENTRIES, "inside"] : ENTRIES, shared));
}

/**
 * Code without its comments, which no host has to read, but with its names and lines, which a stack trace shows. The
 * bundler drops comments only from what it also puts on one line, so it lays that out anew.
 */
async function readable(code) {
  const options = { format: "esm", target: "es2022", legalComments: "none" };
  const short = await transform(code, { ...options, minifyWhitespace: true });
  return (await transform(short.code, options)).code;
}

/** How many bytes of a minified bundle of the Workers' entry come from each source, by its name. */
export async function sharesOf(core) {
  const { metafile } = await build({
    entryPoints: [source("entry.workerd")],
    absWorkingDir: ROOT,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    plugins: [parts({ core, shared: new Set(), open: false })],
  });
  const [{ inputs }] = Object.values(metafile.outputs);
  return new Map(Object.entries(inputs).map(([path, { bytesInOutput }]) => [basename(path), bytesInOutput]));
}

/** Finds generated files, leaves wasm to the host, and names the file of the package that a module is in. */
function parts({ core, shared, open }) {
  return {
    name: "parts",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\.?\// }, ({ path, resolveDir, kind }) => {
        if (kind === "entry-point") return undefined;
        if (/\.wasm(\?module)?$/.test(path)) return { path, external: true };
        if (path.endsWith("/core.inline.js")) return { path: "core.wasm", namespace: "inline" };
        const own = path.endsWith("/core.js");
        const file = own ? join(core, "core.js") : resolve(resolveDir, path.replace(/\.js$/, ".ts"));
        if (shared.has(file)) return { path: "./main.js", external: true, sideEffects: false };
        if (ENTRIES.includes(file)) return { path: `./${basename(path)}`, external: true };
        return { path: file };
      });
      onLoad({ filter: /.*/, namespace: "inline" }, ({ path }) => ({
        contents: inlineSource(join(core, path)),
        loader: "js",
      }));
      onLoad({ filter: /[/\\]core\.js$/ }, ({ path }) => ({
        contents: foldGlue(readFileSync(path, "utf8")),
        loader: "js",
      }));
      if (!open) return;
      onResolve({ filter: /^inside$/ }, ({ path }) => ({ path, namespace: "inside" }));
      onLoad({ filter: /.*/, namespace: "inside" }, () => ({ contents: INSIDE_ENTRY, loader: "ts", resolveDir: SRC }));
      onLoad({ filter: /[/\\]main\.ts$/ }, ({ path }) => ({
        contents: readFileSync(path, "utf8") + INSIDE,
        loader: "ts",
        resolveDir: SRC,
      }));
    },
  };
}

/** What entries take from main.js has to be named in main.ts; the bundler does not look into another's output. */
function checkNames(main, entries) {
  const [{ exports }] = Object.values(main.outputs);
  for (const file of Object.keys(entries.outputs)) {
    const code = readFileSync(join(ROOT, file), "utf8");
    for (const [, names] of code.matchAll(/^import \{([^}]*)\} from "\.\/main\.js";$/gm)) {
      for (const name of names.split(",").map((text) => text.trim().split(" as ")[0])) {
        if (name !== "" && !exports.includes(name)) throw new Stop(`${basename(file)} needs ${name} of main.ts`);
      }
    }
  }
}

/** Removes the declarations that no entry's lead to; writes that of the wasm file. */
export function pruneTypes(dist) {
  const needed = new Set();
  const visit = (file) => {
    if (needed.has(file)) return;
    needed.add(file);
    for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]*)\.js"/g)) {
      visit(resolve(dirname(file), `${path}.d.ts`));
    }
  };
  for (const name of ["index", "slim", "testing"]) visit(join(dist, `${name}.d.ts`));
  for (const file of filesUnder(dist)) if (file.endsWith(".d.ts") && !needed.has(file)) rmSync(file);
  for (const { name } of readdirSync(dist, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    if (filesUnder(join(dist, name)).length === 0) rmSync(join(dist, name), { recursive: true });
  }
  writeFileSync(
    join(dist, "core.wasm.d.ts"),
    "/** The core, compiled: what Workers and edge functions get when they import a `.wasm` file. */\n" +
      "declare const module: WebAssembly.Module;\nexport default module;\n",
  );
}

/** The package as it is in pkg/dist, open, in the folder `to`, with the core of the folder `from`. */
export async function packageAround(from, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  cpSync(join(PKG, "package.json"), join(to, "package.json"));
  const declarations = (path) => !relative(DIST, path).endsWith(".js");
  cpSync(DIST, join(to, "dist"), { recursive: true, filter: declarations });
  await bundle(from, join(to, "dist"), { open: true });
}
