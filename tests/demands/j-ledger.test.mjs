/** The ledger: what is counted, what may have been paid for, and what must never be in it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { API_KEY, rig, timed } from "../clients/rig.mjs";
import { anthropic, openai } from "../upstream/bodies.mjs";
import { refusedUrl } from "../upstream/upstream.mjs";

describe("J2 one operation and its attempts are two kinds of record", () => {
  it("J2 ids and parents hold them together, for each of twenty calls", async (t) => {
    const { chat, attempts, calls, upstream } = await rig(
      t,
      (/** @type {any} */ request) => (request.n % 2 ? openai.overloaded() : openai.chat("fine")),
      { retry: { budget: false }, breaker: false, concurrency: false },
    );
    for (let i = 0; i < 20; i++) await chat({ prompt: `call ${i}` });
    const parents = await calls();
    const children = await attempts();
    assert.deepEqual([parents.length, children.length, upstream.seen.length], [20, 40, 40]);
    assert.equal(new Set(parents.map((call) => call.logical_request_id)).size, 20);
    for (const call of parents) {
      const own = children.filter((attempt) => attempt.logical_request_id === call.logical_request_id);
      assert.deepEqual([own.length, call.attempts, call.status], [2, 2, "succeeded"]);
      assert.deepEqual(
        own.map((attempt) => attempt.attempt_no),
        [1, 2],
      );
    }
  });

  it("J2 each record has the fields of its kind, and a time that can be read", async (t) => {
    const { chat, keel, attempts, calls } = await rig(t, [openai.overloaded(), openai.chat("fine")]);
    await chat({ fetch: keel.with({ tenant: "acme", operation: "ticket.summary" }).fetch });
    const always = [
      "schema",
      "type",
      "logical_request_id",
      "user_or_tenant_id",
      "operation_type",
      "provider",
      "model",
      "prompt_hash",
      "started_at",
      "finished_at",
      "status",
      "error_class",
      "latency_ms",
    ];
    for (const attempt of await attempts()) {
      for (const field of [
        ...always,
        "attempt_id",
        "attempt_no",
        "input_token_estimate",
        "max_output_tokens",
        "client_timeout_ms",
        "queue_ms",
        "delivery",
        "http_status",
        "reason",
        "rule",
        "decision",
        "retry_after_ms",
        "backoff_ms",
        "provider_request_id",
        "bytes",
        "rung",
        "bucket",
      ]) {
        assert.ok(field in attempt, `attempt.${field}`);
      }
      assert.deepEqual(
        [attempt.schema, attempt.user_or_tenant_id, attempt.operation_type],
        [1, "acme", "ticket.summary"],
      );
      assert.ok(Math.abs(Date.parse(attempt.started_at) - Date.now()) < 60_000);
      assert.ok(Date.parse(attempt.finished_at) >= Date.parse(attempt.started_at));
      assert.deepEqual(JSON.parse(JSON.stringify(attempt)), attempt, "plain JSON");
    }
    for (const call of await calls()) {
      for (const field of [
        ...always,
        "attempts",
        "rung",
        "quality",
        "fallback_used",
        "final_result_pointer",
        "output_token_count",
      ]) {
        assert.ok(field in call, `call.${field}`);
      }
      assert.deepEqual([call.quality, call.fallback_used, call.output_token_count], ["primary", false, 1]);
    }
  });

  it("J2 a logical request id that the caller gives is kept", async (t) => {
    const { chat, keel, attempts, calls } = await rig(t, [openai.chat("fine")]);
    await chat({ fetch: keel.with({ logicalRequestId: "order-7" }).fetch });
    assert.deepEqual(
      [(await calls())[0].logical_request_id, (await attempts())[0].logical_request_id],
      ["order-7", "order-7"],
    );
  });
});

describe("J7 what may have been paid for is known, and not paid twice unasked", { concurrency: true }, () => {
  for (const [name, step] of /** @type {const} */ ([
    ["a reset after the request went out", { resetBeforeHead: true }],
    ["a reset in the body", { ...openai.chat("x"), resetAtByte: 30 }],
    ["silence", { hang: "head" }],
    ["a 504", { status: 504, body: "upstream request timeout" }],
    ["a 524", { status: 524, body: "A timeout occurred" }],
  ])) {
    it(`J7 ${name} is not repeated where that is forbidden`, async (t) => {
      const { chat, upstream, attempts } = await rig(t, () => step, {
        retry: { ambiguous: "never" },
        timeouts: { firstByteMs: 150 },
      });
      await timed(() => chat());
      assert.equal(upstream.seen.length, 1);
      assert.notEqual((await attempts())[0].delivery, "not_sent");
    });
  }

  it("J7 a refused connection was not sent, and may be tried again all the same", async (t) => {
    const { chat, attempts } = await rig(t, [], { retry: { ambiguous: "never" } });
    const url = await refusedUrl();
    await assert.rejects(chat({ url }));
    assert.deepEqual(
      (await attempts()).map((attempt) => attempt.delivery),
      ["not_sent", "not_sent", "not_sent"],
    );
  });

  it("J7 an answered failure isn't ambiguous", async (t) => {
    const { chat, upstream } = await rig(t, [openai.overloaded(), openai.chat("fine")], {
      retry: { ambiguous: "never" },
    });
    assert.equal((await chat()).status, 200);
    assert.equal(upstream.seen.length, 2);
  });

  it("J7 an idempotency key stays the same over all attempts", async (t) => {
    const { chat, upstream } = await rig(t, [openai.overloaded(), { resetBeforeHead: true }, openai.chat("fine")]);
    assert.equal((await chat({ headers: { "idempotency-key": "order-7" } })).status, 200);
    assert.deepEqual(
      upstream.seen.map((seen) => seen.headers["idempotency-key"]),
      ["order-7", "order-7", "order-7"],
    );
  });
});

describe("J9 no key and no text leaves by a record, an error or a log", () => {
  const PROMPT = "PROMPT-the-patient-is-called-Ada";
  const ANSWER = "ANSWER-the-diagnosis-is-measles";

  it("J9 whatever happens to the call", async (t) => {
    const echo = openai.error(400, { message: `Invalid message: ${PROMPT}. Key ${API_KEY} was used.` });
    /** @type {[string, any, object?][]} */
    const fates = [
      ["success", [openai.chat(ANSWER)]],
      ["a body that breaks", () => ({ ...openai.chat(ANSWER), resetAtByte: 300 })],
      [
        "a body that isn't JSON",
        () => ({ headers: { "content-type": "application/json" }, body: `{"text":"${ANSWER}` }),
      ],
      ["an error that echoes", () => echo],
      ["a server error that echoes", () => ({ ...echo, status: 500 })],
      ["an HTML page that echoes", () => ({ status: 502, body: `<p>${PROMPT} ${API_KEY}</p>` })],
      ["silence", () => ({ hang: "head" }), { timeouts: { firstByteMs: 60 } }],
      ["a reset", () => ({ resetBeforeHead: true })],
      [
        "an error in a stream",
        [
          {
            ...openai.overloadedInStream(),
            body: [
              ...openai.chatStream(ANSWER).body.slice(0, 3),
              `data: {"error":{"message":"${PROMPT} ${API_KEY}"}}\n\n`,
            ],
          },
        ],
      ],
      ["an Anthropic error that echoes", () => anthropic.error(429, "rate_limit_error", `${PROMPT} ${API_KEY}`)],
    ];
    const refused = await refusedUrl();
    const printed = capture(t);
    for (const [name, script, options] of fates) {
      const { chat, records, keel, openai: sdk } = await rig(t, script, options);
      const { error } = await timed(async () =>
        (await chat({ prompt: PROMPT, headers: { "x-api-key": API_KEY } })).text(),
      );
      await timed(() =>
        sdk({ maxRetries: 0 }).chat.completions.create({
          model: "gpt-5",
          messages: [{ role: "user", content: PROMPT }],
        }),
      );
      await timed(() => chat({ url: `${refused}/${API_KEY}?key=${API_KEY}`, prompt: PROMPT }));
      await keel.flush();
      assert.ok(records.length >= 6, name);
      // An error thrown by the platform for a broken body carries nothing of ours; keel's own has the records.
      for (const [what, text] of [
        ["records", inspect(records, { depth: 9 }) + JSON.stringify(records)],
        ["error", inspect(error, { depth: 9 })],
      ]) {
        for (const secret of [API_KEY, API_KEY.slice(-12), PROMPT, ANSWER]) {
          assert.ok(!text?.includes(secret), `${name}: ${what} contain ${secret}`);
        }
      }
    }
    assert.equal(printed(), "", "nothing is printed");
  });

  it("J9 the prompt's hash is keyed: the same within an instance, another in the next", async (t) => {
    const hashes = [];
    for (const hashKey of ["a", "a", "b", undefined, undefined]) {
      const { chat, attempts } = await rig(t, () => openai.chat("fine"), hashKey === undefined ? {} : { hashKey });
      await chat({ prompt: PROMPT });
      await chat({ prompt: PROMPT });
      const [first, second] = await attempts();
      assert.equal(first.prompt_hash, second.prompt_hash);
      hashes.push(first.prompt_hash);
    }
    assert.equal(hashes[0], hashes[1]);
    assert.equal(new Set(hashes).size, 4);
  });
});

/** Collects what is printed while the test runs. */
function capture(/** @type {{ after: (fn: () => unknown) => void }} */ t) {
  let text = "";
  const names = /** @type {const} */ (["log", "info", "warn", "error", "debug"]);
  const originals = names.map((name) => console[name]);
  for (const name of names) {
    console[name] = (/** @type {unknown[]} */ ...values) => {
      text += `${values.map((value) => inspect(value)).join(" ")}\n`;
    };
  }
  t.after(() => {
    for (const [i, name] of names.entries()) Object.assign(console, { [name]: originals[i] });
  });
  return () => text;
}
