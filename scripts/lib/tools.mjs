// Finds what the build needs, or installs it under `.tools/`, with the versions pinned here: Node packages, Rust, the
// wasm32 target, wasm-pack, wasm-bindgen and wasm-opt. What cannot be had is said in words that tell what to do.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { ask, dim, environment, must, ROOT, run, Stop, say, TOOLS, yellow } from "./run.mjs";

const WASM_PACK = "0.15.1";
const TARGET = "wasm32-unknown-unknown";

/**
 * The passes of wasm-opt that give the smallest download. Nothing lies in the first 1,024 bytes of memory but the far end
 * of the stack, and a new instance begins with zeros. What is called from one place stays a function and functions of one
 * module of the source lie side by side, both for gzip, which finds more in small pieces and near alike ones.
 */
export const SMALLEST =
  "-Oz --one-caller-inline-max-function-size=20 --converge --low-memory-unused --zero-filled-memory " +
  "--reorder-functions-by-name";

/** The crate and the command line of wasm-bindgen must agree to the last digit, so the version is the crate's. */
export function wasmBindgenVersion() {
  const version = /^wasm-bindgen\s*=\s*(?:\{ version = )?"=([\d.]+)"/m.exec(
    readFileSync(join(ROOT, "Cargo.toml"), "utf8"),
  )?.[1];
  if (version === undefined) throw new Stop('Cargo.toml must pin wasm-bindgen exactly: `wasm-bindgen = "=0.2.x"`');
  return version;
}

/** Stops unless Node is at least what the root package.json asks for. */
export function checkNode() {
  const wanted = /(\d+)\.(\d+)/.exec(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).engines.node);
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < +wanted[1] || (major === +wanted[1] && minor < +wanted[2])) {
    throw new Stop(
      `this is Node ${process.versions.node}; evenkeel needs ${wanted[1]}.${wanted[2]} or newer.\n` +
        "       Get one from https://nodejs.org, or with `npx node@22 <script>`.",
    );
  }
}

/** Installs the development packages when they are absent or older than the lock file. */
export async function ensurePackages() {
  const installed = statSync(join(ROOT, "node_modules", ".package-lock.json"), { throwIfNoEntry: false });
  const wanted = statSync(join(ROOT, "package-lock.json"));
  if (installed !== undefined && installed.mtimeMs >= wanted.mtimeMs) return;
  if (ask("npm", ["--version"]) === undefined) {
    throw new Stop("npm was not found; it comes with Node from https://nodejs.org (Debian: `apt-get install npm`).");
  }
  say("installing the development packages (npm ci) …");
  await must("npm ci", "npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
}

/** Stops unless there is a Rust compiler; resolves to its version line. */
export function checkRust() {
  const version = ask("rustc", ["--version"]);
  if (version === undefined || ask("cargo", ["--version"]) === undefined) {
    throw new Stop(
      "Rust was not found (`rustc` and `cargo` on the PATH). evenkeel's core is written in it.\n" +
        "       Install it from https://rustup.rs, version 1.88 or newer, then run this again.",
    );
  }
  const [, major, minor] = /^rustc (\d+)\.(\d+)/.exec(version) ?? [];
  const wanted = /^rust-version\s*=\s*"1\.(\d+)/m.exec(readFileSync(join(ROOT, "Cargo.toml"), "utf8"))?.[1] ?? "85";
  if (+major === 1 && +minor < +wanted) {
    throw new Stop(`this is ${version}; evenkeel needs 1.${wanted} or newer: \`rustup update stable\`.`);
  }
  return version;
}

/**
 * How to compile for wasm32 here: `{ how, path, env, cargoArgs, mode }` for wasm-pack.
 *
 * First what is installed, then `rustup target add`, then a standard library that is built from Debian's sources by
 * Debian's compiler, for machines that reach a Debian mirror and a crates mirror but not static.rust-lang.org.
 */
export async function ensureTarget() {
  const plain = { how: "rustup's target", path: [], env: {}, cargoArgs: [], mode: "normal" };
  const forced = process.env.EVENKEEL_STD_FROM_SOURCE === "1";
  if (!forced) {
    if (hasStd(ask("rustc", ["--print", "sysroot"]))) return plain;
    if (ask("rustup", ["--version"]) !== undefined) {
      say(`adding Rust's ${TARGET} target (rustup) …`);
      const added = await run("rustup", ["target", "add", TARGET]);
      if (added.code === 0) return plain;
      say(yellow(`rustup could not add ${TARGET}; trying Debian's compiler with std built from source`));
      say(dim(added.output.trim()));
    }
  }
  return await stdFromSource();
}

function hasStd(sysroot) {
  const lib = join(sysroot ?? "", "lib", "rustlib", TARGET, "lib");
  return sysroot !== undefined && existsSync(lib) && readdirSync(lib).some((name) => name.startsWith("libstd-"));
}

async function stdFromSource() {
  const rustc = "/usr/bin/rustc";
  const cargo = "/usr/bin/cargo";
  const library = () => join(ask(rustc, ["--print", "sysroot"]) ?? "", "lib", "rustlib", "src", "rust", "library");
  const complete = () => existsSync(rustc) && existsSync(cargo) && existsSync(join(library(), "std", "Cargo.toml"));
  const packages = ["rustc-web", "cargo-web", "rust-web-src"];
  if (!complete()) await aptInstall(packages);
  if (!complete()) {
    throw new Stop(
      `Rust's ${TARGET} target is missing. Run \`rustup target add ${TARGET}\`, or on Debian, as root,\n` +
        `       \`apt-get install ${packages.join(" ")}\`, then run this again.`,
    );
  }
  // Debian's own rust-lld is a package of its own; rustup ships one with every toolchain.
  let linker = rustLld();
  if (linker === undefined) {
    await aptInstall(["lld"]);
    linker = ask("sh", ["-c", "command -v wasm-ld"]);
  }
  if (linker === undefined) {
    throw new Stop("no linker for wasm: neither rustup's `rust-lld` nor `wasm-ld` (Debian: `apt-get install lld`).");
  }
  return {
    how: "std built from Debian's sources",
    path: ["/usr/bin"],
    env: {
      RUSTC: rustc,
      CARGO: cargo,
      RUSTC_BOOTSTRAP: "1",
      CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER: linker,
      // Another compiler's artefacts must not be mixed with those of the usual one.
      CARGO_TARGET_DIR: join(ROOT, "target", "debian"),
    },
    cargoArgs: ["-Z", "build-std=std,panic_abort"],
    mode: "force", // wasm-pack would refuse: the target is not in the compiler's sysroot
  };
}

function rustLld() {
  const sysroot =
    ask("rustup", ["run", "stable", "rustc", "--print", "sysroot"]) ?? ask("rustc", ["--print", "sysroot"]);
  const hosts = join(sysroot ?? "", "lib", "rustlib");
  if (sysroot === undefined || !existsSync(hosts)) return undefined;
  const candidates = readdirSync(hosts).map((host) => join(hosts, host, "bin", "rust-lld"));
  return candidates.find((path) => existsSync(path));
}

async function aptInstall(packages) {
  if (process.getuid?.() !== 0 || ask("apt-get", ["--version"]) === undefined) return;
  say(`installing ${packages.join(", ")} (apt-get) …`);
  const env = environment({ DEBIAN_FRONTEND: "noninteractive" });
  await run("apt-get", ["update", "-qq"], { env });
  const done = await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], { env });
  if (done.code !== 0) say(dim(done.output.trim()));
}

/** Paths of wasm-pack and wasm-bindgen, installed under `.tools/` if neither there nor on the PATH. */
export async function ensureWasmTools() {
  return {
    wasmPack: await ensureCargoTool("wasm-pack", "wasm-pack", WASM_PACK, ["--locked"]),
    // Not --locked: crates that its lock file names have been taken back, and some mirrors have not got them.
    wasmBindgen: await ensureCargoTool("wasm-bindgen", "wasm-bindgen-cli", wasmBindgenVersion(), []),
  };
}

async function ensureCargoTool(binary, crate, version, flags) {
  const own = join(TOOLS, "bin", process.platform === "win32" ? `${binary}.exe` : binary);
  const right = (command) => ask(command, ["--version"])?.split(" ")[1] === version;
  if (existsSync(own) && right(own)) return own;
  if (right(binary)) return binary;
  say(`installing ${crate} ${version} under .tools (cargo, a minute or two) …`);
  mkdirSync(TOOLS, { recursive: true });
  const target = join(TOOLS, "target");
  // They run for a fraction of a second on a small file: compile them fast rather than well.
  const env = environment({
    CARGO_TARGET_DIR: target,
    CARGO_PROFILE_RELEASE_OPT_LEVEL: "1",
    CARGO_PROFILE_RELEASE_LTO: "off",
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS: "16",
  });
  const args = ["install", crate, "--version", version, "--root", TOOLS, "--force", ...flags];
  let done = await run("cargo", args, { env });
  if (done.code !== 0 && flags.includes("--locked")) {
    done = await run(
      "cargo",
      args.filter((arg) => arg !== "--locked"),
      { env },
    );
  }
  if (done.code !== 0) {
    process.stderr.write(done.output);
    throw new Stop(`could not install ${crate} ${version} (is crates.io, or its mirror, within reach?)`);
  }
  return own;
}

/** Removes what `cargo install` left behind. */
export function tidyTools() {
  rmSync(join(TOOLS, "target"), { recursive: true, force: true });
}

/** wasm-opt of the npm package binaryen, as arguments for `process.execPath`. */
export function wasmOptScript() {
  const script = join(ROOT, "node_modules", "binaryen", "bin", "wasm-opt");
  if (!existsSync(script)) throw new Stop("node_modules/binaryen is missing: run `npm ci`.");
  return script;
}
