// Compiles tests/types/*.ts against the packed tarball, in each way in which a user's project may be set up. What must
// not compile is marked in the files themselves (`@ts-expect-error`). The last line is `N passed, M failed`.

import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { green, ROOT, red, run, runMain, say } from "../../scripts/lib/run.mjs";
import { install, pack } from "./lib/workshop.mjs";

const BASE = {
  target: "ES2022",
  strict: true,
  noEmit: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
};
const OURS = ["options.ts", "failures.ts", "kit.ts", "state.ts"];
const WITH_WASM = [...OURS, "slim.ts"];
const WEB = { lib: ["ES2022", "DOM", "DOM.Iterable"], types: [] };

/** Name, compiler options, files. Our own declarations are checked too, where nobody else's come into it. */
const PROJECTS = [
  ["NodeNext, with the DOM's types", { ...WEB, module: "NodeNext" }, WITH_WASM],
  ["a bundler, with the DOM's types", { ...WEB, module: "ESNext", moduleResolution: "bundler" }, WITH_WASM],
  [
    "a bundler that knows the condition workerd",
    { ...WEB, module: "ESNext", moduleResolution: "bundler", customConditions: ["workerd"] },
    OURS,
  ],
  [
    "no strictness at all",
    { ...WEB, module: "NodeNext", strict: false, exactOptionalPropertyTypes: false },
    ["clients.ts"],
    true,
  ],
  ["Node's types alone", { module: "NodeNext", lib: ["ES2022"], types: ["node"] }, [...OURS, "slim-node.ts"], true],
  ["the SDKs, with the DOM's types", { ...WEB, module: "NodeNext" }, ["clients.ts"], true],
  ["the SDKs, with Node's types too", { ...WEB, types: ["node"], module: "NodeNext" }, ["clients.ts"], true],
];

await runMain(async () => {
  const wanted = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies;
  const others = ["@anthropic-ai/sdk", "@types/node", "openai"].map((name) => [name, wanted[name]]);
  const dependencies = { evenkeel: undefined, ...Object.fromEntries(others) };
  const manifest = { name: "evenkeel-types", private: true, type: "module", dependencies };
  const folder = await install("types", await pack(), { manifest });
  const sources = join(ROOT, "tests", "types");
  for (const file of readdirSync(sources)) cpSync(join(sources, file), join(folder, file));
  const total = { passed: 0, failed: 0 };
  for (const [at, [name, options, files, skipLibCheck = false]] of PROJECTS.entries()) {
    const config = join(folder, `tsconfig.${at}.json`);
    writeFileSync(config, JSON.stringify({ compilerOptions: { ...BASE, ...options, skipLibCheck }, files }));
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const { code, output } = await run(process.execPath, [tsc, "-p", config], { cwd: folder });
    total[code === 0 ? "passed" : "failed"] += 1;
    say(code === 0 ? `${green("✓")} ${name}` : `${red("✗")} ${name}\n${output}`);
  }
  if (total.failed > 0) process.exitCode = 1;
  say(`\n${total.passed} passed, ${total.failed} failed`);
});
