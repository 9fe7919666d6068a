// An edge route that asks a provider through evenkeel. `createKeel` may stand at module scope.
import { createKeel } from "evenkeel";

export const runtime = "edge";

let attempts = 0;
const keel = createKeel({
  ledger(record) {
    if (record.type === "call") attempts = record.attempts;
  },
});

export async function GET() {
  const { BASE_URL = "https://api.openai.com/v1", OPENAI_API_KEY = "" } = process.env;
  const response = await keel.fetch(`${BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Say hello." }] }),
  });
  const { choices } = await response.json();
  await keel.flush();
  return Response.json({ answer: choices[0].message.content, attempts });
}
