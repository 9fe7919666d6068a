// `npm run bench`: all benches, or those of `--only call,memory,stream,native,crossing`. `--hosts` runs the call bench in
// every runtime that is installed. Nothing here fails for being slow: figures are compared by people, and machines differ.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { environment, options, ROOT, runMain, Stop } from "../scripts/lib/run.mjs";

const node = (file, ...args) => [process.execPath, ["--expose-gc", join(ROOT, "benches", file), ...args]];

const BENCHES = {
  call: (flags) => [node("call.mjs", ...(flags.hosts ? ["--hosts"] : []))],
  memory: () => [node("memory.mjs")],
  stream: () => [node("stream.mjs")],
  native: () => [["cargo", ["bench", "--quiet", "--bench", "*"]]],
  crossing: () => [node("crossing/run.mjs")],
};

await runMain(async () => {
  const flags = options(
    { only: "call,memory,stream,native", hosts: false },
    "usage: npm run bench -- [--only call,memory,stream,native,crossing] [--hosts]",
  );
  for (const name of flags.only.split(",")) {
    if (BENCHES[name] === undefined) throw new Stop(`no bench ${name}: there are ${Object.keys(BENCHES).join(", ")}`);
    for (const [command, args] of BENCHES[name](flags)) await shown(command, args);
  }
});

function shown(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: ROOT, env: environment(), stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Stop(`${[command, ...args].join(" ")} ended with status ${code}`)),
    );
  });
}
