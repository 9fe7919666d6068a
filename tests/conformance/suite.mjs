/**
 * The conformance suite: what evenkeel does, asked in the same words on every host. It takes the library and its testing
 * kit as arguments, so that one suite serves the workspace, the packed tarball and a bundle; a runner of a few lines for
 * each runtime is in `tests/runtimes`.
 */
import bodies from "./bodies.mjs";
import config from "./config.mjs";
import control from "./control.mjs";
import fetching from "./fetching.mjs";
import { assert, Cases, perform, rigFor } from "./harness.mjs";
import ledger from "./ledger.mjs";
import retries from "./retries.mjs";
import { scriptedRun } from "./scripted.mjs";
import streams from "./streams.mjs";
import surroundings from "./surroundings.mjs";
import time from "./time.mjs";

const PARTS = { fetching, retries, time, bodies, streams, ledger, config, control, surroundings };

/**
 * Runs every case, one after the other.
 *
 * @param lib The module `evenkeel`.
 * @param testing The module `evenkeel/testing`.
 * @param report Called for each case with `{ name, error }`; `error` is a string, or undefined.
 * @returns `{ passed, failed, golden }`, the last being what has to be the same to the byte on every host.
 */
export async function run(lib, testing, report = () => {}) {
  const cases = new Cases();
  for (const [name, part] of Object.entries(PARTS)) {
    part(cases.group(name), { lib, testing, assert, rig: rigFor(lib, testing) });
  }
  const totals = { passed: 0, failed: 0, golden: "" };
  const settle = (name, error) => {
    totals[error === undefined ? "passed" : "failed"] += 1;
    report({ name, error: error === undefined ? undefined : describe(error) });
  };
  for (const one of cases.list) settle(one.name, await perform(one));

  const error = await perform({
    async run() {
      totals.golden = await scriptedRun(lib, testing);
      const again = await scriptedRun(lib, testing);
      assert.ok(totals.golden === again, "two runs with one seed and one clock differ");
    },
  });
  settle("scripted: the same seed, clock and script give the same records", error);
  return totals;
}

function describe(error) {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const where =
    error instanceof Error ? /[a-z]+\.mjs:\d+/.exec(error.stack?.replace(/harness\.mjs:\d+/g, "") ?? "") : null;
  return where === null ? text : `${text} (${where[0]})`;
}
