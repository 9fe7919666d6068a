/**
 * `npm run demo`: the same troubles under the real OpenAI and Anthropic SDKs, with and without `keel.fetch`, as a
 * table; the ledger of one request as a timeline; and what ten SDKs make of troubled streams. Everything runs on this machine against a scripted upstream.
 * Exits with 1 if a row of keel's doesn't end as it should.
 */

import { SDKS } from "../tests/clients/streams.mjs";
import { paintWith, showsColour } from "./colour.mjs";
import { runAlone, runWithKeel } from "./run.mjs";
import { INTERESTING, mistakes, SCENARIOS } from "./scenarios.mjs";
import { renderStreams, runStreams } from "./streams.mjs";
import { renderTable } from "./table.mjs";
import { renderTimeline } from "./timeline.mjs";

const paint = paintWith(showsColour(process.stdout, process.env));
const startedAt = performance.now();

console.log(`${SCENARIOS.length} troubles, each with the SDK alone and with \`new OpenAI({ fetch: keel.fetch })\` …\n`);
const rows = await Promise.all(
  SCENARIOS.map(async (scenario) => {
    const [alone, keel] = await Promise.all([runAlone(scenario), runWithKeel(scenario)]);
    return { scenario, alone, keel };
  }),
);
console.log(renderTable(rows, paint));

const interesting = rows.find((row) => row.scenario.id === INTERESTING);
if (interesting) {
  console.log(`\nWhat the ledger says of “${interesting.scenario.trouble}”:\n`);
  console.log(renderTimeline(interesting.keel.records, paint));
}

console.log(`\n${SDKS.length} SDKs, each reading troubled streams to what their user sees …\n`);
const streams = await runStreams();
console.log(renderStreams(streams, paint));

const wrong = [
  ...rows.flatMap(({ scenario, keel }) => mistakes(scenario.keel, keel)),
  ...streams.flatMap((row) => row.wrong),
];
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
console.log(
  wrong.length === 0
    ? `\n${paint.good("Every outcome is what it should be")} (${seconds} s).`
    : `\n${paint.bad(`${wrong.length} outcomes are not what they should be`)} (${seconds} s).`,
);
process.exitCode = wrong.length === 0 ? 0 : 1;
