// Cloudflare's workerd: a real `.wasm` module, at the oldest compatibility date that is supported, at the first one with
// FinalizationRegistry, and at the newest; with and without nodejs_compat.

import { cpSync } from "node:fs";
import { join } from "node:path";
import { broken, HERE, stage } from "../lib/tools.mjs";
import { bundleWorker, latestDate, startWorkerd } from "../lib/workerd.mjs";

const NODE = ["nodejs_compat"];

export default {
  async workerd() {
    const folder = await stage("workerd");
    cpSync(join(HERE, "worker.mjs"), join(folder, "worker.mjs"));
    const bundle = await bundleWorker(folder, "worker.mjs");
    const total = { passed: 0, failed: 0, failures: [], golden: "" };
    for (const date of ["2024-10-14", "2025-05-05", latestDate()]) {
      for (const flags of [[], NODE]) {
        const result = await inWorkerd(bundle, date, flags);
        total.passed += result.passed;
        total.failed += result.failed;
        const where = `${date}${flags.length > 0 ? ", nodejs_compat" : ""}`;
        for (const { name, error } of result.failures) total.failures.push({ name: `${where}: ${name}`, error });
        if (total.golden === "") total.golden = result.golden;
        else if (result.golden !== total.golden && result.golden !== "") {
          total.failed += 1;
          total.failures.push({ name: where, error: "the golden records differ from those of the first date" });
        }
      }
    }
    return total;
  },
};

async function inWorkerd(bundle, date, flags) {
  const server = await startWorkerd(bundle, { date, flags });
  try {
    const response = await fetch(server.url, { signal: AbortSignal.timeout(90_000) });
    const text = await response.text();
    return response.ok ? JSON.parse(text) : broken(`${response.status}: ${text}\n${server.output().slice(-2_000)}`);
  } catch (error) {
    return broken(`${error.message}\n${server.output().slice(-2_000)}`);
  } finally {
    await server.stop();
  }
}
