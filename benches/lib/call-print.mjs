// The call bench as a program, for hosts with a standard output: prints microseconds a call as its last line.

import { contenders } from "./contenders.mjs";
import { libraries } from "./libraries.mjs";
import { interleaved } from "./measure.mjs";

// Node counts processor time, which a busy machine disturbs less; GC and compilation are in it.
const usage = globalThis.process?.cpuUsage;
const clock = usage
  ? () => {
      const { user, system } = usage.call(globalThis.process);
      return (user + system) / 1_000;
    }
  : () => performance.now();
console.log(JSON.stringify(await interleaved(contenders(libraries), { clock })));
