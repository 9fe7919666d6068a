// Releases the npm package and the crate, or with --dry-run does everything but that. Meant to run in CI, from a tag:
// npm's provenance needs the CI's identity token, and both versions must be the tag's.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask, must, options, PKG, ROOT, runMain, Stop, say } from "./lib/run.mjs";

const USAGE = `usage: node scripts/release.mjs [--dry-run] [--skip-tests]
  --dry-run      stop before anything is published
  --skip-tests   do not run npm test first (it has just run)`;

await runMain(async () => {
  const flags = options({ "dry-run": false, "skip-tests": false }, USAGE);
  const version = JSON.parse(readFileSync(join(PKG, "package.json"), "utf8")).version;
  for (const problem of obstacles(version)) {
    if (!flags["dry-run"]) throw new Stop(problem);
    say(`would stop here: ${problem}`);
  }

  if (!flags["skip-tests"]) await must("npm test", process.execPath, ["scripts/test.mjs"], { show: true });
  await must("the build", process.execPath, ["scripts/build.mjs"], { show: true });
  await must("the tarball check", process.execPath, ["scripts/pack.mjs"], { show: true });

  const dry = flags["dry-run"] ? ["--dry-run"] : [];
  // A dry run has no identity to sign with.
  const provenance = flags["dry-run"] ? ["--provenance=false"] : ["--provenance"];
  const npm = ["publish", "--access", "public", ...provenance, ...dry];
  await must("npm publish", "npm", npm, { cwd: PKG, show: true });
  await must("cargo publish", "cargo", ["publish", ...dry, ...(flags["dry-run"] ? ["--allow-dirty"] : [])], {
    show: true,
  });
  say(flags["dry-run"] ? `\nevenkeel ${version} would have been published` : `\nevenkeel ${version} is published`);
});

/** What stands in the way of a release of this version. */
function obstacles(version) {
  const crate = /^version = "([^"]+)"/m.exec(readFileSync(join(ROOT, "Cargo.toml"), "utf8"))?.[1];
  const changelog = readFileSync(join(ROOT, "CHANGELOG.md"), "utf8");
  return [
    ...(crate === version ? [] : [`Cargo.toml says ${crate}, pkg/package.json ${version}`]),
    ...(changelog.includes(`## [${version}]`) ? [] : [`CHANGELOG.md has no section for ${version}`]),
    ...(ask("git", ["status", "--porcelain"]) === "" ? [] : ["the working tree has changes"]),
    ...(ask("git", ["tag", "--points-at", "HEAD"])?.split("\n").includes(`v${version}`)
      ? []
      : [`HEAD is not v${version}`]),
    ...(existsSync(join(PKG, "README.md")) ? [] : ["pkg/README.md is missing"]),
  ];
}
