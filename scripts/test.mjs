// `npm test`: every check of the repository, stage by stage, from STAGES in scripts/lib/stages.mjs.
//
// A stage that cannot run here is skipped out loud; where CI is set, a skip counts as a failure. The last line is
// `N passed, M failed` (and `, K skipped`); the exit status is 1 if anything failed.

import { bold, dim, environment, green, options, red, run, runMain, Stop, say, yellow } from "./lib/run.mjs";
import { STAGES } from "./lib/stages.mjs";
import { checkNode, ensurePackages } from "./lib/tools.mjs";

const USAGE = `usage: npm test -- [options]
  --only <a,b>   run these stages alone
  --skip <a,b>   run all but these
  --list         print the stages
  --verbose      show the output of stages that pass, as it comes`;

await runMain(async () => {
  const flags = options({ only: "", skip: "", list: false, verbose: false }, USAGE);
  if (flags.list) {
    for (const { name, about } of STAGES) say(`${name.padEnd(14)} ${about}`);
    return;
  }
  checkNode();
  await ensurePackages();

  const inCi = process.env.CI !== undefined && process.env.CI !== "" && process.env.CI !== "false";
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const stage of chosen(flags)) {
    const unmet = await stage.needs?.();
    const result = unmet === undefined ? await perform(stage, flags.verbose) : skip(stage, unmet, inCi);
    for (const key of Object.keys(total)) total[key] += result[key] ?? 0;
  }
  if (total.failed > 0) process.exitCode = 1;
  const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
  say(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
});

function chosen({ only, skip: without }) {
  const names = (list) => list.split(",").filter((name) => name !== "");
  for (const name of [...names(only), ...names(without)]) {
    if (!STAGES.some((stage) => stage.name === name)) throw new Stop(`no stage is called ${name}; see --list`);
  }
  return STAGES.filter(({ name }) => (only === "" || names(only).includes(name)) && !names(without).includes(name));
}

function skip(stage, unmet, inCi) {
  const { reason, allowed } = typeof unmet === "string" ? { reason: unmet, allowed: false } : unmet;
  const what = `${stage.name}: skipped, ${reason}`;
  const fails = inCi && !allowed;
  say(fails ? `${red("✗")} ${what} (a failure in CI)` : `${yellow("-")} ${what}`);
  return fails ? { failed: 1 } : { skipped: 1 };
}

/** Runs one stage; its own numbers count, and a non-zero status is a failure even if no test says so. */
async function perform(stage, verbose) {
  const began = Date.now();
  const [command, ...args] = typeof stage.command === "function" ? stage.command() : stage.command;
  const { code, output } = await run(command, args, { env: environment(stage.env ?? {}), show: verbose });
  const counts = stage.count?.(output) ?? { passed: code === 0 ? 1 : 0, failed: 0 };
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  // A stage that reports numbers and found nothing to run has lost its tests.
  if (code === 0 && counts.passed + counts.failed + (counts.skipped ?? 0) === 0) counts.failed = 1;

  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  const failed = counts.failed > 0;
  const numbers = [
    `${counts.passed} passed`,
    failed ? `${counts.failed} failed` : "",
    counts.skipped > 0 ? `${counts.skipped} skipped` : "",
  ];
  const text = numbers.filter((part) => part !== "").join(", ");
  say(`${failed ? red("✗") : green("✓")} ${bold(stage.name)}: ${text} ${dim(`(${seconds} s)`)}`);
  if (failed && !verbose) say(output.trimEnd());
  return counts;
}
