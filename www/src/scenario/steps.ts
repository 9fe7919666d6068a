/** Steps of the scripted upstream with the pace of a real provider, so that there is something to see. */
import { type Chunk, openai, type Step } from "evenkeel/testing";

/** What every answer says when it arrives whole. */
export const ANSWER = "A keel holds a ship on its course: most of it is under water, and nobody notices it in a calm.";

/** Milliseconds until a head, unless a trouble needs another. */
const HEAD_MS = 180;

/** The same answer, but its head takes a while. */
export function after(ms: number, step: Step): Step {
  return { ...step, delayMs: ms };
}

/** A refusal: its head takes as long as refusals do. */
export function refusal(step: Step): Step {
  return after(HEAD_MS, step);
}

/** A whole body that arrives in `count` parts, as over a slow line. */
export function inParts(step: Step, count = 6, gapMs = 90): Step {
  const { json, ...rest } = step;
  const text = JSON.stringify(json);
  const size = Math.ceil(text.length / count);
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += size) chunks.push(text.slice(at, at + size));
  const headers = { "content-type": "application/json", ...rest.headers };
  return { ...rest, headers, chunks, gapMs, delayMs: 320 };
}

/** A stream at the pace at which models write. */
export function paced(step: Step & { readonly chunks: readonly Chunk[] }, gapMs = 55): Step & { chunks: Chunk[] } {
  return { ...step, chunks: [...step.chunks], gapMs, delayMs: 240 };
}

/** The good answer of most troubles: OpenAI's, in parts. */
export function fine(): Step {
  return inParts(openai.chat(ANSWER));
}
