// One successful, non-streamed chat call over a stub `fetch`, made in different ways. No imports: the libraries are
// arguments, so the same code runs in Node, Deno, Bun and workerd.

const URL_ = "https://api.openai.com/v1/chat/completions";
const REQUEST = JSON.stringify({
  model: "gpt-5",
  max_completion_tokens: 512,
  messages: [
    { role: "system", content: "You are a careful assistant. Answer in one sentence." },
    { role: "user", content: "What keeps a ship on an even keel?" },
  ],
});
const ANSWER = JSON.stringify({
  id: "chatcmpl-CQp3V6lZyH9uB2kZ1mXr8sT4wYfGd",
  object: "chat.completion",
  created: 1795996800,
  model: "gpt-5-2026-08-07",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Ballast low in the hull, and a crew that trims its sails in time." },
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 38, completion_tokens: 17, total_tokens: 55 },
});
const MESSAGE = JSON.stringify({
  id: "msg_01XFDUDYJgAACzvnptvVoYEL",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-5",
  content: [{ type: "text", text: "Ballast low in the hull, and a crew that trims its sails in time." }],
  stop_reason: "end_turn",
  usage: { input_tokens: 38, output_tokens: 17 },
});
const HEADERS = {
  "content-type": "application/json",
  "x-request-id": "req_8f14e45fceea167a5a36dedd4bea2543",
  "x-ratelimit-limit-requests": "10000",
  "x-ratelimit-remaining-requests": "9999",
  "x-ratelimit-reset-requests": "6ms",
  "openai-processing-ms": "412",
};
const INIT = {
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer sk-not-a-key" },
  body: REQUEST,
};

const answer = async () => new Response(ANSWER, { status: 200, headers: HEADERS });
const message = async () => new Response(MESSAGE, { status: 200, headers: HEADERS });

/** The same answer after its body was read under a signal and a timer, and nothing more. */
async function rebuilt(/** @type {Response} */ response) {
  const { signal } = new AbortController();
  const timer = setTimeout(() => signal.throwIfAborted(), 60_000);
  const reader = response.body?.getReader();
  const chunks = [];
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) break;
    chunks.push(value);
  }
  clearTimeout(timer);
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  return new Response(stream, { status: response.status, headers: response.headers });
}

const times = (/** @type {() => Promise<unknown>} */ call) => async (/** @type {number} */ n) => {
  for (let i = 0; i < n; i += 1) await call();
};

/**
 * @param {any} libraries `createKeel` of evenkeel, and whichever of `cockatiel`, `pRetry`, `ky`, `OpenAI` and `Anthropic`
 *   there are.
 * @returns {Record<string, (n: number) => Promise<unknown>>} Each makes `n` calls in a row.
 */
export function contenders({ createKeel, cockatiel, pRetry, ky, OpenAI, Anthropic }) {
  const seen = { records: 0 };
  const ledger = () => {
    seen.records += 1;
  };
  const keel = createKeel({ fetch: answer, ledger });
  const read = async (/** @type {Response} */ response) => {
    if ((await response.json()).choices.length !== 1) throw new Error("the answer is not the stub's");
  };

  /** @type {Record<string, (n: number) => Promise<unknown>>} */
  const all = {
    bare: times(async () => read(await answer())),
    // What every layer pays that lets nobody see half a body: it is read to its end, and a new response is made around it.
    "read and rebuilt, no layer": times(async () => read(await rebuilt(await answer()))),
    evenkeel: times(async () => read(await keel.fetch(URL_, INIT))),
  };
  if (pRetry) {
    const options = { retries: 2, minTimeout: 500 };
    all["p-retry"] = times(async () => read(await pRetry(answer, options)));
  }
  if (cockatiel) {
    const { handleAll, retry, circuitBreaker, timeout, wrap, ExponentialBackoff, ConsecutiveBreaker, TimeoutStrategy } =
      cockatiel;
    const policy = wrap(
      retry(handleAll, { maxAttempts: 2, backoff: new ExponentialBackoff() }),
      circuitBreaker(handleAll, { halfOpenAfter: 10_000, breaker: new ConsecutiveBreaker(5) }),
      timeout(60_000, TimeoutStrategy.Aggressive),
    );
    all["cockatiel"] = times(async () => read(await policy.execute(answer)));
  }
  if (ky) {
    const client = ky.create({ fetch: answer, retry: 2, timeout: 60_000 });
    all["ky"] = times(async () => read(await client(URL_, INIT)));
  }
  if (OpenAI) {
    const params = JSON.parse(REQUEST);
    const client = new OpenAI({ apiKey: "sk-not-a-key", fetch: answer, dangerouslyAllowBrowser: true });
    all["openai"] = times(() => client.chat.completions.create(params));
    const through = new OpenAI({ apiKey: "sk-not-a-key", fetch: keel.fetch, dangerouslyAllowBrowser: true });
    all["openai + evenkeel"] = times(() => through.chat.completions.create(params));
  }
  if (Anthropic) {
    const client = new Anthropic({ apiKey: "sk-not-a-key", fetch: message, dangerouslyAllowBrowser: true });
    all["anthropic"] = times(() =>
      client.messages.create({
        model: "claude-sonnet-5",
        max_tokens: 512,
        messages: [{ role: "user", content: "What keeps a ship on an even keel?" }],
      }),
    );
  }
  return all;
}
