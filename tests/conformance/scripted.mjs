/**
 * A day in the life of one keel, with a seed, a fixed clock and every kind of trouble: its outcomes and records have to
 * be the same to the byte on every host. `golden.ndjson` is what they are; `node tests/runtimes/run.mjs --update node20` writes it anew.
 */
import { drain } from "./harness.mjs";

const CHAT = "https://api.openai.com/v1/chat/completions";
const MESSAGES = "https://api.anthropic.com/v1/messages";

/** Resolves to the outcomes and records as text, one a line. */
export async function scriptedRun({ createKeel }, { anthropic, fakeClock, openai, scriptedUpstream, seededRandom }) {
  const clock = fakeClock({ now: Date.UTC(2026, 10, 30, 8) });
  const random = seededRandom(20_261_130);
  const lines = [];
  const stream = openai.chatStream("one two three four five");
  const messages = anthropic.messageStream("eins zwei drei");

  const named = {
    "a success": [{ ...openai.chat("fine"), delayMs: 210 }],
    "an overload": [openai.overloaded(), { ...openai.chat("fine"), delayMs: 95 }],
    "an outage": [openai.overloaded(), openai.overloaded(), openai.overloaded()],
    "a rate limit": [openai.rateLimited(3), openai.chat("fine")],
    "an hour's limit": [openai.rateLimited(3_600)],
    "a used-up quota": [openai.quotaExhausted()],
    "a mistake": [openai.badRequest()],
    "a refusal": [{ fail: "refused", as: "node" }, { fail: "reset", as: "deno" }, openai.chat("fine")],
    "nobody there": [{ fail: "dns" }, { fail: "refused", as: "bun" }, { fail: "reset", as: "workerd" }],
    "a silence": [{ hang: true }, openai.chat("fine")],
    "half an answer": [{ ...openai.chat("a long answer"), cutAt: 70 }, openai.chat("fine")],
    "a stream": [{ ...stream, delayMs: 180, gapMs: 35 }],
    "a late stream": [
      { ...stream, chunks: [stream.chunks[0], openai.errorEvent()] },
      { ...stream, gapMs: 20 },
    ],
    "a cut stream": [{ ...stream, chunks: stream.chunks.slice(0, 4), gapMs: 15 }],
    "a reset stream": [{ ...stream, chunks: stream.chunks.slice(0, 4), gapMs: 15, end: "reset" }],
    "a stuck stream": [{ ...stream, chunks: stream.chunks.slice(0, 4), gapMs: 15, end: "stall" }],
    "a message": [anthropic.overloaded(), anthropic.message("gut")],
    "a message stream": [{ ...messages, gapMs: 11 }],
    "a broken message stream": [{ ...messages, chunks: [...messages.chunks.slice(0, 5), anthropic.errorEvent()] }],
    "a cancelled call": [{ hang: true }],
    "a cancelled backoff": [openai.rateLimited(20)],
  };
  const asked = new Map();
  const upstream = scriptedUpstream(
    (seen) => {
      const name = seen.headers["x-case"];
      const steps = named[name];
      if (steps === undefined) {
        // Traffic at random, from the seed.
        const dice = random();
        const step =
          dice < 0.15
            ? openai.overloaded()
            : dice < 0.25
              ? openai.rateLimited(1 + Math.floor(dice * 10))
              : openai.chat("ok");
        return { ...step, delayMs: Math.floor(random() * 400) };
      }
      const at = asked.get(name) ?? 0;
      asked.set(name, at + 1);
      return steps[at];
    },
    { clock },
  );
  const keel = createKeel({
    fetch: upstream.fetch,
    clock,
    seed: 7_777_777,
    hashKey: "golden",
    timeouts: { firstByteMs: 8_000, chunkGapMs: 6_000, totalMs: 90_000 },
    ledger: (record) => void lines.push(JSON.stringify(record)),
  });

  const ask = async (name, signal) => {
    const own = name.includes("message");
    const streamed = name.includes("stream");
    const body = JSON.stringify({
      model: own ? "claude-sonnet-4-5" : modelOf(name),
      max_tokens: 256,
      ...(streamed ? { stream: true } : {}),
      messages: [{ role: "user", content: `What about ${name}?` }],
    });
    const init = { method: "POST", headers: { "content-type": "application/json", "x-case": name }, body };
    const { fetch } = keel.with({ tenant: `tenant-${name.length % 3}`, operation: "golden" });
    const began = clock.now();
    let outcome;
    try {
      const response = await fetch(own ? MESSAGES : CHAT, signal === undefined ? init : { ...init, signal });
      const facts = [...response.headers].filter(([header]) => header.startsWith("x-"));
      const { text, error } = response.body === null ? { text: "", error: undefined } : await drain(response);
      outcome = { status: response.status, facts, text, error: error === undefined ? null : summary(error) };
    } catch (error) {
      outcome = { thrown: summary(error) };
    }
    lines.push(JSON.stringify({ case: name, after_ms: clock.now() - began, ...outcome }));
  };

  await clock.run(async () => {
    for (const name of Object.keys(named)) {
      const controller = new AbortController();
      if (name.includes("cancelled")) clock.setTimeout(() => controller.abort(new Error("the caller's own")), 1_234);
      await ask(name, name.includes("cancelled") ? controller.signal : undefined);
      await clock.sleep(30_000);
    }
    const crowd = Array.from({ length: 40 }, async (_, i) => {
      await clock.sleep(i * 37);
      await ask(`crowd ${i}`);
    });
    await Promise.all(crowd);
    await keel.flush();
  });
  return `${lines.join("\n")}\n`;
}

/** Limits of an hour cool a model of their own, or nothing after them would be sent. */
function modelOf(name) {
  return /limit|quota|cancelled/.test(name) ? `gpt-5-${name.replace(/\W+/g, "-")}` : "gpt-5";
}

function summary(error) {
  const { name, message, reason, retryable, retryAfterMs } = error;
  return { name, message, class: error.class, reason, retryable, retryAfterMs };
}
