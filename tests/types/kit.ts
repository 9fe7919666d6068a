// The testing kit fits the options that it is made for.

import { type Clock, createKeel } from "evenkeel";
import {
  anthropic,
  fakeClock,
  openai,
  type ScriptedUpstream,
  type Step,
  type StreamStep,
  scriptedUpstream,
} from "evenkeel/testing";

const clock = fakeClock();
const asClock: Clock = clock;
const steps: Step[] = [openai.overloaded(), { status: 500, json: { error: {} } }];
const streamed: StreamStep = anthropic.messageStream("Hello there.");
const upstream: ScriptedUpstream = scriptedUpstream([...steps, { ...streamed, cutAt: 40 }], { clock });
createKeel({ fetch: upstream.fetch, clock: asClock, seed: 1 });
const answer: Promise<number> = clock.run(async () => 1);
void answer;

// @ts-expect-error no such member of a step
scriptedUpstream([{ code: 500 }]);
