// A streamed answer through `keel.fetch` beside the same bytes untouched.
//
//   node --expose-gc benches/stream.mjs

import { createServer } from "node:http";
import { createKeel } from "evenkeel";
import { createParser } from "eventsource-parser";
import OpenAI from "openai";
import { cpu, interleaved, median } from "./lib/measure.mjs";
import { heading, table, target } from "./lib/print.mjs";

const URL_ = "https://api.openai.com/v1/chat/completions";
const INIT = { method: "POST", body: JSON.stringify({ model: "gpt-5", stream: true, messages: [] }) };
const HEADERS = { "content-type": "text/event-stream" };
const encoder = new TextEncoder();

/** Token events as the API sends them, about 270 bytes each. */
function events(/** @type {number} */ count) {
  const all = [];
  for (let i = 0; i < count; i += 1) {
    const choice = {
      index: 0,
      delta: { content: i % 7 === 0 ? " größer" : ` word${i % 10}` },
      logprobs: null,
      finish_reason: null,
    };
    all.push(chunk([choice]));
  }
  all.push(chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }]), "data: [DONE]\n\n");
  return all;
}

function chunk(/** @type {object[]} */ choices) {
  const head = { id: "chatcmpl-CQp3V6lZyH9uB2kZ1mXr8sT4wYfGd", object: "chat.completion.chunk", created: 1795996800 };
  return `data: ${JSON.stringify({ ...head, model: "gpt-5-2026-08-07", system_fingerprint: "fp_cbf1785567", choices, obfuscation: "aB3x" })}\n\n`;
}

function streamOf(/** @type {Uint8Array[]} */ chunks) {
  let at = 0;
  return new ReadableStream(
    {
      pull(controller) {
        const next = chunks[at];
        at += 1;
        if (next === undefined) controller.close();
        else controller.enqueue(next);
      },
    },
    { highWaterMark: 0 },
  );
}

async function drain(/** @type {ReadableStream<Uint8Array>} */ stream) {
  const reader = stream.getReader();
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return bytes;
    bytes += value.byteLength;
  }
}

let records = 0;
const ledger = () => {
  records += 1;
};

await chunks();
await sdk();
await socket();
await held();
if (records === 0) throw new Error("the ledger got nothing");

/** Microseconds more a chunk, beside the cost of reading it untouched. */
async function chunks() {
  const tokens = events(2_000);
  for (const [name, parts] of [
    ["one event (270 bytes)", tokens.map((event) => encoder.encode(event))],
    ["16 KiB", sliced(encoder.encode(tokens.join("")), 16_384)],
  ]) {
    const answer = async () => new Response(streamOf(parts), { headers: HEADERS });
    const keel = createKeel({ fetch: answer, ledger });
    const times = (body) => async (/** @type {number} */ n) => {
      for (let i = 0; i < n; i += 1) await body();
    };
    const size = parts.reduce((sum, part) => sum + part.byteLength, 0);
    const whole = async (stream) => {
      if ((await drain(stream)) !== size) throw new Error("bytes are missing");
    };
    const got = await interleaved(
      {
        untouched: times(async () => whole((await answer()).body)),
        TransformStream: times(async () => whole((await answer()).body.pipeThrough(new TransformStream()))),
        evenkeel: times(async () => whole((await keel.fetch(URL_, INIT)).body)),
        "eventsource-parser, no pipe": times(async () => parse(parts)),
      },
      { clock: cpu, rounds: 9, calls: 5, warmUp: 10 },
    );
    heading(`A stream of ${parts.length} chunks of ${name}`);
    const each = (label) => got[label] / parts.length;
    table(
      ["", "µs a chunk", "over untouched"],
      Object.keys(got).map((label) => [label, each(label).toFixed(2), (each(label) - each("untouched")).toFixed(2)]),
    );
    target(`µs more a chunk of ${name}`, each("evenkeel") - each("untouched"), 3, "at most");
  }
}

function parse(/** @type {Uint8Array[]} */ parts) {
  const decoder = new TextDecoder();
  let seen = 0;
  const parser = createParser({
    onEvent: () => {
      seen += 1;
    },
  });
  for (const part of parts) parser.feed(decoder.decode(part, { stream: true }));
  if (seen === 0) throw new Error("no event was parsed");
}

function sliced(/** @type {Uint8Array} */ bytes, /** @type {number} */ size) {
  const parts = [];
  for (let at = 0; at < bytes.byteLength; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}

/** A user of the OpenAI SDK, who reads a whole streamed answer of 1,000 token events. */
async function sdk() {
  const parts = events(1_000).map((event) => encoder.encode(event));
  const answer = async () => new Response(streamOf(parts), { headers: HEADERS });
  const keel = createKeel({ fetch: answer, ledger });
  const read = (fetch) => {
    const client = new OpenAI({ apiKey: "sk-not-a-key", fetch });
    return async (/** @type {number} */ n) => {
      for (let i = 0; i < n; i += 1) {
        let tokens = 0;
        for await (const _ of await client.chat.completions.create({ model: "gpt-5", stream: true, messages: [] }))
          tokens += 1;
        if (tokens !== 1_001) throw new Error(`${tokens} events instead of 1001`);
      }
    };
  };
  const got = await interleaved(
    { bare: read(answer), evenkeel: read(keel.fetch) },
    { clock: cpu, rounds: 15, calls: 4, warmUp: 10 },
  );
  heading("A whole streamed answer of 1,000 events in the OpenAI SDK");
  table(
    ["", "ms an answer"],
    Object.keys(got).map((name) => [name, (got[name] / 1_000).toFixed(2)]),
  );
  target("times as long as with the bare fetch", got.evenkeel / got.bare, 1.1, "at most");
}

/** 100 MB of events over a loopback socket. */
async function socket() {
  const part = Buffer.from(events(4_000).slice(0, -2).join(""));
  const end = Buffer.from(events(0).join(""));
  const count = Math.ceil(100_000_000 / part.byteLength);
  const server = createServer(async (request, response) => {
    request.resume();
    response.writeHead(200, HEADERS);
    for (let i = 0; i < count; i += 1) {
      if (!response.write(part)) await new Promise((resolve) => response.once("drain", resolve));
    }
    response.end(end);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const url = `http://127.0.0.1:${server.address().port}/v1/chat/completions`;
  const keel = createKeel({ ledger });
  const speed = async (fetchFn) => {
    const begin = performance.now();
    const bytes = await drain((await fetchFn(url, INIT)).body);
    return bytes / 1e3 / (performance.now() - begin);
  };
  const bare = [];
  const kept = [];
  for (let round = 0; round < 5; round += 1) {
    bare.push(await speed(fetch));
    kept.push(await speed(keel.fetch));
  }
  server.close();
  heading("100 MB of events over a loopback socket");
  table(
    ["", "MB/s"],
    [
      ["bare fetch", median(bare).toFixed(0)],
      ["evenkeel", median(kept).toFixed(0)],
    ],
  );
  target("of the bare speed", median(kept) / median(bare), 0.8, "at least");
}

/** What 100 streams hold whose readers stop after the first chunk, and how far their upstreams were read. */
async function held() {
  const STREAMS = 100;
  const part = encoder.encode(events(60).slice(0, -2).join(""));
  let pulled = 0;
  const endless = async () =>
    new Response(
      new ReadableStream(
        {
          pull(controller) {
            pulled += 1;
            controller.enqueue(part.slice());
          },
        },
        { highWaterMark: 0 },
      ),
      { headers: HEADERS },
    );
  const memory = () => {
    globalThis.gc?.();
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const keep = async (/** @type {typeof fetch} */ fetchFn) => {
    const before = memory();
    const readers = [];
    for (let i = 0; i < STREAMS; i += 1) {
      const reader = (await fetchFn(URL_, INIT)).body.getReader();
      await reader.read();
      readers.push(reader);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    const each = (memory() - before) / STREAMS / 1_024;
    for (const reader of readers) await reader.cancel();
    return each;
  };
  const keel = createKeel({ fetch: endless, ledger });
  await keep(endless);
  await keep(keel.fetch);
  const bare = await keep(endless);
  pulled = 0;
  const each = await keep(keel.fetch);
  heading("100 streams whose readers stop after the first chunk");
  table(
    ["", "KB a stream"],
    [
      ["bare", bare.toFixed(1)],
      ["evenkeel", each.toFixed(1)],
    ],
  );
  target("KB more a stream", each - bare, 8, "at most");
  target("chunks read of each upstream", pulled / STREAMS, 2, "at most");
}
