// Builds the npm package: Rust core -> wasm (wasm-pack, wasm-bindgen, wasm-opt) -> pkg/dist, then TypeScript beside it.
//
//   build/wasm/       core.js, core.d.ts, core.wasm of the core as it ships
//   build/wasm-trap/  the same with the cargo feature `test-trap`; build/pkg-trap/ is the whole package with it
//   build/pkg-open/   the package with one file more, by which benchmarks reach its inside
//   build/types/      declarations of generated files, which pkg/tsconfig.json reads
//   build/stamp.json  hashes of what went in: nothing is rebuilt when nothing changed

import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { gzipSync } from "node:zlib";
import { bundle, packageAround, pruneTypes, writeTypes } from "./lib/dist.mjs";
import {
  BUILD,
  DIST,
  dim,
  environment,
  filesUnder,
  fingerprint,
  must,
  options,
  PKG,
  ROOT,
  run,
  runMain,
  Stop,
  say,
} from "./lib/run.mjs";
import {
  checkNode,
  checkRust,
  ensurePackages,
  ensureTarget,
  ensureWasmTools,
  SMALLEST,
  tidyTools,
  wasmOptScript,
} from "./lib/tools.mjs";

const USAGE = `usage: npm run build -- [options]
  --with-trap          also build the core with the feature test-trap, into build/wasm-trap and build/pkg-trap
  --wasm-only          stop after build/wasm
  --force              rebuild even if nothing changed
  --opt-level <l>      cargo's opt-level: s, z, 2, 3 (default: Cargo.toml's)
  --wasm-opt <passes>  passes of wasm-opt, such as "-O3" or "-Oz"; "none" skips it (default: those that docs/performance.md measures as smallest)
  --simd               compile with simd128
  --out <dir>          where the wasm goes instead of build/wasm; implies --wasm-only
  --verbose            show what the tools print`;

const STAMP = join(BUILD, "stamp.json");
const scripts = (...names) => names.map((name) => join(ROOT, "scripts", name));
const WASM_SCRIPTS = scripts("build.mjs", "lib/run.mjs", "lib/tools.mjs");
const SCRIPTS = [...WASM_SCRIPTS, ...scripts("lib/dist.mjs", "lib/glue.mjs", "lib/inline.mjs")];

await runMain(async () => {
  const flags = options(
    {
      "with-trap": false,
      "wasm-only": false,
      force: false,
      verbose: false,
      simd: false,
      "opt-level": "",
      "wasm-opt": SMALLEST,
      out: "",
    },
    USAGE,
  );
  checkNode();
  const rustc = checkRust();
  await ensurePackages();
  const stamp = readStamp();

  const main = flags.out === "" ? join(BUILD, "wasm") : join(ROOT, flags.out);
  let wasm = await buildWasm({ key: basename(main), out: main, features: ["module"], flags, rustc, stamp });
  if (flags["wasm-only"] || flags.out !== "") return;
  await buildPackage({ wasm, flags, stamp });

  if (flags["with-trap"]) {
    const out = join(BUILD, "wasm-trap");
    wasm = await buildWasm({ key: "wasm-trap", out, features: ["module", "test-trap"], flags, rustc, stamp });
    await packageAround(out, join(BUILD, "pkg-trap"));
  }
});

/** Makes core.js, core.d.ts and core.wasm in `out`; resolves to the hash of what they were made from. */
async function buildWasm({ key, out, features, flags, rustc, stamp }) {
  const inputs = ["Cargo.toml", "Cargo.lock", "build.rs", "src", ".cargo"].map((name) => join(ROOT, name));
  const settings = [rustc, flags["opt-level"], flags["wasm-opt"], flags.simd, features, process.env.RUSTFLAGS ?? ""];
  const hash = fingerprint([...inputs, ...WASM_SCRIPTS], settings.map(String));
  const outputs = ["core.js", "core.d.ts", "core.wasm"].map((name) => join(out, name));
  if (!flags.force && stamp[key] === hash && outputs.every((file) => existsSync(file))) {
    say(dim(`core: ${key} is up to date`));
    return hash;
  }

  const target = await ensureTarget();
  const { wasmBindgen, wasmPack } = await ensureWasmTools();
  tidyTools();
  const rustflags = [process.env.RUSTFLAGS ?? "", flags.simd ? "-C target-feature=+simd128" : "", ...shortPaths()]
    .join(" ")
    .trim();
  const env = environment({
    ...target.env,
    ...(rustflags === "" ? {} : { RUSTFLAGS: rustflags }),
    ...(flags["opt-level"] === "" ? {} : { CARGO_PROFILE_RELEASE_OPT_LEVEL: flags["opt-level"] }),
  });
  env.PATH = [...target.path, env.PATH].join(delimiter);

  say(`core: compiling ${key} (wasm-pack, release, ${target.how}) …`);
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const packArgs = ["build", ROOT, "--target", "web", "--release", "--out-dir", out, "--out-name", "core"];
  const quiet = ["--no-pack", "--no-opt", "--no-gitignore", "--mode", target.mode];
  const extra = ["--", "--features", features.join(","), ...target.cargoArgs];
  const options = { env, show: flags.verbose };
  await must("wasm-pack", wasmPack, [...packArgs, ...quiet, ...extra], options);

  // wasm-pack has no way to pass these on: the function that starts a fresh instance after a trap, and sections that
  // nobody reads. So wasm-bindgen runs once more over what cargo made; it takes a fraction of a second.
  const targetDir = env.CARGO_TARGET_DIR ?? join(ROOT, "target");
  const compiled = join(targetDir, "wasm32-unknown-unknown", "release", "evenkeel.wasm");
  await must(
    "wasm-bindgen",
    wasmBindgen,
    [
      ...["--target", "web", "--out-dir", out, "--out-name", "core", "--omit-default-module-path"],
      ...["--experimental-reset-state-function", "--remove-producers-section"],
      // wasm-opt orders by names, and removes them.
      ...(flags["wasm-opt"] === "none" ? ["--remove-name-section"] : []),
      compiled,
    ],
    options,
  );
  renameSync(join(out, "core_bg.wasm"), join(out, "core.wasm"));
  rmSync(join(out, "core_bg.wasm.d.ts"), { force: true });
  await optimise(join(out, "core.wasm"), flags["wasm-opt"], options);

  const bytes = readFileSync(join(out, "core.wasm"));
  if (!WebAssembly.validate(bytes)) throw new Stop(`${key}/core.wasm is not valid WebAssembly for this Node`);
  const kilobytes = (size) => (size / 1000).toFixed(1);
  say(
    `core: ${key}/core.wasm ${kilobytes(bytes.length)} KB, ${kilobytes(gzipSync(bytes, { level: 9 }).length)} KB gzipped`,
  );
  writeStamp(stamp, { [key]: hash });
  return hash;
}

/**
 * Panic locations hold the paths of the sources: of this machine, and other ones on every machine. They are replaced, so
 * that the module is the same wherever it was built, and tells nothing of where.
 */
function shortPaths() {
  const cargo = process.env.CARGO_HOME ?? join(homedir(), ".cargo");
  const rustup = process.env.RUSTUP_HOME ?? join(homedir(), ".rustup");
  const names = [
    [ROOT, "evenkeel"],
    [join(cargo, "registry", "src"), "deps"],
    [join(rustup, "toolchains"), "rust"],
    [homedir(), "home"],
  ];
  // Cargo splits the flags at spaces; a path with one stays as it is.
  return names.filter(([path]) => !path.includes(" ")).map(([path, name]) => `--remap-path-prefix=${path}=${name}`);
}

async function optimise(file, passes, options) {
  if (passes === "none") return;
  const strip = ["--strip-debug", "--strip-producers", "--strip-target-features"];
  const args = [wasmOptScript(), ...passes.split(" "), ...strip, file, "-o", `${file}.opt`];
  await must("wasm-opt", process.execPath, args, options);
  renameSync(`${file}.opt`, file);
}

/** Puts the wasm, the bundled JavaScript and its declarations into pkg/dist. */
async function buildPackage({ wasm, flags, stamp }) {
  const sources = [join(PKG, "src"), join(PKG, "tsconfig.json"), join(ROOT, "package-lock.json"), ...SCRIPTS];
  const hash = fingerprint(sources, [wasm]);
  if (!flags.force && stamp.dist === hash && existsSync(join(DIST, "main.js"))) {
    say(dim("package: pkg/dist is up to date"));
    return;
  }
  const core = join(BUILD, "wasm");
  writeTypes(core);

  say("package: checking types (tsc), bundling (esbuild) …");
  rmSync(DIST, { recursive: true, force: true });
  writeStamp(stamp, { dist: undefined });
  const tsc = [join(ROOT, "node_modules", "typescript", "bin", "tsc"), "-p", PKG, "--emitDeclarationOnly"];
  const { code, output } = await run(process.execPath, tsc);
  if (code !== 0) {
    process.stderr.write(output);
    throw new Stop("tsc found errors in pkg/src (above)");
  }
  pruneTypes(DIST);
  await bundle(core, DIST);
  await packageAround(core, join(BUILD, "pkg-open"));
  for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) cpSync(join(ROOT, name), join(PKG, name));
  writeStamp(stamp, { dist: hash });
  const total = filesUnder(DIST).reduce((sum, file) => sum + statSync(file).size, 0);
  say(`package: pkg/dist, ${filesUnder(DIST).length} files, ${Math.round(total / 1000)} KB`);
}

function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, "utf8"));
  } catch {
    return {}; // none yet, or one that was cut short: everything is built
  }
}

function writeStamp(stamp, entries) {
  Object.assign(stamp, entries);
  mkdirSync(BUILD, { recursive: true });
  writeFileSync(STAMP, `${JSON.stringify(stamp, null, 2)}\n`);
}
