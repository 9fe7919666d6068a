// What one successful, non-streamed call costs over the bare stub `fetch`, beside other layers that people use.
//
//   node benches/call.mjs [--rounds 15] [--calls 1000]

import Anthropic from "@anthropic-ai/sdk";
import * as cockatiel from "cockatiel";
import { createKeel } from "evenkeel";
import ky from "ky";
import OpenAI from "openai";
import pRetry from "p-retry";
import { contenders } from "./lib/contenders.mjs";
import { interleaved } from "./lib/measure.mjs";

const all = contenders({ createKeel, cockatiel, pRetry, ky, OpenAI, Anthropic });
const cpu = () => {
  const u = process.cpuUsage();
  return (u.user + u.system) / 1000;
};
const times = await interleaved(all, { clock: process.argv.includes("--cpu") ? cpu : () => performance.now() });
for (const n in times)
  console.log(
    n,
    "overhead",
    (times[n] - times.bare).toFixed(1),
    "x cockatiel",
    ((times[n] - times.bare) / (times.cockatiel - times.bare)).toFixed(2),
  );
console.log(times);
