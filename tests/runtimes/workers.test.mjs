// A Worker in workerd under clients as they are: impatient, many at once, and gone in the middle of things.

import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startProvider } from "./lib/provider.mjs";
import { HERE, stage } from "./lib/tools.mjs";
import { bundleWorker, latestDate, startWorkerd } from "./lib/workerd.mjs";

const HOSTS = [
  { date: "2024-10-14", flags: [] },
  { date: latestDate(), flags: ["nodejs_compat"] },
];
const WAVES = 10;
const WAVE = 500;
const ROUNDS = 3;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks again until `check` is content or the time is up; gives what it saw last. */
async function eventually(look, check, ms) {
  for (const end = Date.now() + ms; ; await sleep(100)) {
    const seen = await look();
    if (check(seen) || Date.now() > end) return seen;
  }
}

for (const { date, flags } of HOSTS) {
  describe(`a Worker at ${date}${flags.length > 0 ? ` with ${flags}` : ""}`, { timeout: 170_000 }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: WAVE });
    let worker;
    let provider;
    before(async () => {
      const folder = await stage(`workers-${date}`);
      cpSync(join(HERE, "workers-entry.mjs"), join(folder, "workers-entry.mjs"));
      provider = await startProvider();
      worker = await startWorkerd(await bundleWorker(folder, "workers-entry.mjs"), {
        date,
        flags,
        durableObjects: ["Caller"],
      });
    });
    after(async () => {
      agent.destroy();
      await worker?.stop();
      await provider?.close();
    });

    /** One client: its answer's text, or that it hung up, after `hangUp` milliseconds or at the first byte. */
    const client = (path, parameters, { hangUp } = {}) =>
      new Promise((resolve, reject) => {
        const query = new URLSearchParams({ upstream: provider.url, ...parameters });
        const request = get(`${worker.url}${path}?${query}`, { agent }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk) => {
            text += chunk;
            if (hangUp === "at the first byte") leave();
          });
          response.on("end", () => resolve({ status: response.statusCode, text }));
          response.on("error", () => resolve({ left: true }));
        });
        const leave = () => {
          request.destroy();
          resolve({ left: true });
        };
        if (typeof hangUp === "number") setTimeout(leave, hangUp);
        request.on("error", (error) => (request.destroyed ? resolve({ left: true }) : reject(error)));
      });
    const state = async () => JSON.parse((await client("/state", {})).text);

    test(`I4 ${WAVES * WAVE} requests, two of five given up by their clients: nothing hung, mixed or leaked`, async () => {
      const kinds = [
        ["chat", {}],
        ["stream", {}],
        ["flaky", {}],
        ["slow-body", { hangUp: 60 }],
        ["slow-stream", { hangUp: "at the first byte" }],
        ["chat", {}],
        ["stream", {}],
        ["flaky", {}],
        ["backoff", { hangUp: 60 }],
        ["hang", { hangUp: 60 }],
      ];
      const wrong = [];
      let answered = 0;
      for (let wave = 0; wave < WAVES; wave += 1) {
        await Promise.all(
          Array.from({ length: WAVE }, async (_, i) => {
            const id = `w${wave}-${i}-${date}`;
            const [kind, how] = kinds[i % kinds.length];
            const { status, text, left } = await client("/ask", { id, kind }, how);
            if (how.hangUp !== undefined) return;
            answered += 1;
            const own =
              kind === "stream" ? text?.includes(`"${id}:"`) && text.endsWith("[DONE]\n\n") : text?.includes(`"${id}"`);
            if (left === true || status !== 200 || !own)
              wrong.push({ id, kind, status, left, text: text?.slice(0, 200) });
          }),
        );
      }
      assert.deepEqual(wrong.slice(0, 3), [], `${wrong.length} of ${answered} are wrong`);
      assert.equal(answered, (WAVES * WAVE * 6) / 10);
      const end = await eventually(state, ({ main }) => main.permits.held === 0 && main.waiting === 0, 15_000);
      assert.deepEqual([end.main.permits.held, end.main.waiting], [0, 0], "permits and places in a queue");
      assert.ok(
        end.main.tenants.every((tenant) => tenant.active === 0),
        "tenants' calls in flight",
      );
      assert.equal(end.mixed, 0, "async contexts that were another request's");
      if (flags.includes("nodejs_compat"))
        assert.ok(end.checked > WAVES * WAVE, `${end.checked} contexts were looked at`);
      assert.deepEqual(
        end.notices.filter((kind) => kind.startsWith("core")),
        [],
      );
      assert.equal((await client("/ask", { id: "after", kind: "chat" })).status, 200);
    });

    test("I4 two hundred requests that wait for each other are all served, one at a time", async () => {
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => client("/ask", { id: `s${i}`, kind: "chat", keel: "single" })),
      );
      const wrong = answers.filter(({ status, text }, i) => status !== 200 || !text.includes(`"s${i}"`));
      assert.deepEqual(wrong.slice(0, 3), []);
      const { single } = await state();
      assert.deepEqual([single.permits.held, single.waiting], [0, 0]);
    });

    test("I4 a holder that the host has ended keeps its place no longer than its deadline", async () => {
      assert.equal(
        (await client("/leave", { id: "gone", kind: "hang", keel: "single", deadline: "1500" })).text,
        "left",
      );
      const began = Date.now();
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, i) => client("/ask", { id: `h${i}`, kind: "chat", keel: "single" })),
      );
      const ms = Date.now() - began;
      assert.deepEqual(answers.filter(({ status }) => status !== 200).slice(0, 3), []);
      assert.ok(ms < 8_000, `${ms} ms`);
      const { single } = await state();
      assert.deepEqual([single.permits.held, single.waiting], [0, 0]);
    });

    test("I4 those who wait in line and leave are passed over", async () => {
      const holder = client("/ask", { id: "holder", kind: "slow-body", keel: "single" });
      await sleep(50);
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          i % 2 === 0
            ? client("/ask", { id: `q${i}`, kind: "chat", keel: "single" }, { hangUp: 30 })
            : client("/leave", { id: `l${i}`, kind: "chat", keel: "single", deadline: "1200" }),
        ),
      );
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => client("/ask", { id: `p${i}`, kind: "chat", keel: "single" })),
      );
      assert.equal((await holder).status, 200);
      assert.deepEqual(answers.filter(({ status }) => status !== 200).slice(0, 3), []);
    });

    test("I4 a task queue that survives a killed request: killed in a body, a stream, a backoff, in line, or left by its host", async () => {
      const before = await state();
      const killed = [
        ["/ask", "slow-body", { hangUp: 60 }],
        ["/ask", "slow-stream", { hangUp: "at the first byte" }],
        ["/ask", "backoff", { hangUp: 60 }],
        ["/ask", "hang", { hangUp: 60 }],
        // In line, and killed there: their turn comes before this deadline, and they are told of it in vain.
        ["/ask", "chat", { hangUp: 20 }, "8000"],
        ["/leave", "chat", {}, "8000"],
        ["/leave", "hang", {}],
      ];
      const wrong = [];
      let served = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const clients = killed.flatMap(([path, kind, how, deadline = "1200"], i) => {
          const id = `k${round}-${i}-${date}`;
          const neighbours = ["chat", "stream", "flaky"].map(async (own) => {
            const { status, text, left } = await client("/ask", { id: `${id}-${own}`, kind: own, keel: "few" });
            if (left === true || status !== 200 || !text.includes(`${id}-${own}`))
              wrong.push({ id, own, status, text });
            else served += 1;
          });
          // What a killed request holds is free again at its deadline.
          return [client(path, { id, kind, keel: "few", deadline }, how), ...neighbours];
        });
        await Promise.all(clients);
      }
      assert.deepEqual(wrong.slice(0, 3), [], `${wrong.length} are wrong`);
      assert.equal(served, ROUNDS * killed.length * 3);
      // What has come to its end is counted as such by the next call.
      const after = async () => {
        assert.equal((await client("/ask", { id: `after-${date}`, kind: "chat", keel: "few" })).status, 200);
        return state();
      };
      const end = await eventually(after, ({ few }) => few.permits.held === 0 && few.waiting === 0, 10_000);
      assert.deepEqual([end.few.permits.held, end.few.waiting], [0, 0], "permits and places in a queue");
      assert.ok(end.timers > before.timers, "timers were watched");
      assert.deepEqual([end.foreign, end.mixed], [0, 0], "timers of another request, and contexts");
      // Of a hint to one that was killed the host says that it went nowhere; to wait for one is what it does not survive.
      assert.doesNotMatch(worker.output(), /on behalf of a different request|never generate a response/i);
    });

    test("ctx.waitUntil(keel.flush()) keeps the request until the ledger is written", async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => client("/flush", { id: `f${i}`, kind: "chat" })),
      );
      assert.ok(answers.every(({ status }) => status === 200));
      await eventually(
        async () => provider.ledger.length,
        (length) => length >= 40,
        5_000,
      );
      const ids = provider.ledger.filter((record) => record.type === "call").map((record) => record.user_or_tenant_id);
      assert.deepEqual(ids.sort(), Array.from({ length: 20 }, (_, i) => `f${i}`).sort());
    });

    test("a Durable Object calls through the same keel as the requests around it", async () => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          client(i % 2 === 0 ? "/object" : "/ask", { id: `o${i}`, kind: i % 3 === 0 ? "flaky" : "chat" }),
        ),
      );
      const wrong = answers.filter(({ status, text }, i) => status !== 200 || !text.includes(`"o${i}"`));
      assert.deepEqual(wrong.slice(0, 3), []);
      assert.equal((await state()).mixed, 0);
    });
  });
}
