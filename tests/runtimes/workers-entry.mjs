// A Worker as people write it: keels at module scope, calls from requests and from a Durable Object, the ledger flushed
// by `ctx.waitUntil`. What it notices of its own state is told by `/state`.

import { createKeel } from "evenkeel";

// Only with nodejs_compat; without it the checks of the async context are left out.
const { AsyncLocalStorage } = await import("node:async_hooks").catch(() => ({ AsyncLocalStorage: undefined }));
const context = AsyncLocalStorage === undefined ? undefined : new AsyncLocalStorage();
const within = (id, work) => (context === undefined ? work() : context.run(id, work));

const noticed = { mixed: 0, records: 0, checked: 0, notices: [], timers: 0, foreign: 0 };
const same = (id) => {
  if (context === undefined) return;
  noticed.checked += 1;
  if (context.getStore() !== id) noticed.mixed += 1;
};
const ledger = (record) => {
  noticed.records += 1;
  if (record.type === "notice") noticed.notices.push(record.kind);
  else same(record.user_or_tenant_id);
};
const host = (input, init) => {
  same(JSON.parse(init.body).messages[0].content);
  return fetch(input, init);
};
/** The host's clock, by which it shows when a request has to do with the timer of another. */
const clock = {
  now: () => Date.now(),
  setTimeout(work, ms) {
    const owner = context?.getStore();
    noticed.timers += 1;
    const fire = () => {
      touch(owner);
      work();
    };
    return { owner, timer: setTimeout(fire, ms) };
  },
  clearTimeout({ owner, timer }) {
    touch(owner);
    clearTimeout(timer);
  },
};
/** A stream's rest is asked for by the host itself, in nobody's context. */
const touch = (owner) => {
  const now = context?.getStore();
  if (now !== undefined && owner !== undefined && now !== owner) noticed.foreign += 1;
};
const common = { ledger, fetch: host, retry: { budget: false, baseMs: 5, capMs: 20 }, breaker: false };
const provider = { own: { match: ["127.0.0.1:*"], protocol: "openai.chat" } };

const keels = {
  main: createKeel({ ...common, concurrency: false, timeouts: { totalMs: 4_000, minAttemptMs: 10 } }),
  single: createKeel({
    ...common,
    concurrency: { max: 1, adaptive: false },
    timeouts: { totalMs: 20_000, minAttemptMs: 10 },
  }),
  few: createKeel({
    ...common,
    clock,
    concurrency: { max: 4, adaptive: false },
    timeouts: { totalMs: 20_000, minAttemptMs: 10 },
  }),
};
let slow;

async function ask({ id, kind, upstream, keel = "main", deadlineMs, signal }) {
  // A model of its own for each kind, for the troubles of one cool its bucket.
  const model = keel !== "main" ? "gpt-5" : `gpt-5-${kind}`;
  const body = JSON.stringify({ model, stream: kind.includes("stream"), messages: [{ role: "user", content: id }] });
  const { fetch: own } = keels[keel].with({ tenant: id, ...(deadlineMs === undefined ? {} : { deadlineMs }) });
  return own(`${upstream}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-kind": kind },
    body,
    ...(signal === undefined ? {} : { signal }),
  });
}

async function handle(request, env, ctx) {
  const url = new URL(request.url);
  const { id = "", kind = "", upstream = "", keel, deadline } = Object.fromEntries(url.searchParams);
  const deadlineMs = deadline === undefined ? undefined : Number(deadline);
  switch (url.pathname) {
    case "/state":
      return Response.json({
        ...noticed,
        main: keels.main.state(),
        single: keels.single.state(),
        few: keels.few.state(),
      });
    case "/ask": {
      const response = await ask({ id, kind, upstream, keel, deadlineMs });
      same(id);
      return response;
    }
    case "/leave":
      // Nobody waits for it: the host ends what it does as soon as this has answered, without a `finally`.
      ask({ id, kind, upstream, keel, deadlineMs }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 50));
      return new Response("left");
    case "/flush": {
      slow ??= createKeel({
        ...common,
        providers: provider,
        ledger: async (record) => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          await fetch(`${upstream}/ledger`, { method: "POST", body: JSON.stringify(record) });
        },
      });
      keels.slow = slow;
      const response = await ask({ id, kind, upstream, keel: "slow" });
      ctx.waitUntil(slow.flush());
      return response;
    }
    case "/object": {
      const { Caller: callers } = env;
      return callers.get(callers.idFromName(id)).fetch(request);
    }
    default:
      return new Response("no such path", { status: 404 });
  }
}

export class Caller {
  fetch(request) {
    const { id, kind, upstream } = Object.fromEntries(new URL(request.url).searchParams);
    return within(id, () => ask({ id, kind, upstream }));
  }
}

export default {
  async fetch(request, env, ctx) {
    const id = new URL(request.url).searchParams.get("id") ?? "";
    try {
      return await within(id, () => handle(request, env, ctx));
    } catch (error) {
      return new Response(`${error.name}: ${error.message} ${error.reason ?? ""}`, { status: 500 });
    }
  },
};
