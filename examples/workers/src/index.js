// A Worker that asks a provider through evenkeel. `createKeel` may stand at module scope.
import { createKeel } from "evenkeel";

const ended = new Map();
const keel = createKeel({
  ledger(record) {
    if (record.type === "call") ended.set(record.logical_request_id, record.attempts);
  },
});

export default {
  async fetch(_request, env, ctx) {
    const id = crypto.randomUUID();
    const { fetch } = keel.with({ logicalRequestId: id });
    const response = await fetch(`${env.BASE_URL ?? "https://api.openai.com/v1"}/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${env.OPENAI_API_KEY ?? ""}` },
      body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Say hello." }] }),
    });
    const { choices } = await response.json();
    ctx.waitUntil(keel.flush());
    const attempts = ended.get(id);
    ended.delete(id);
    return Response.json({ answer: choices[0].message.content, attempts });
  },
};
