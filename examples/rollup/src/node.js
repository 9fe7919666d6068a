// Asks a provider through evenkeel and prints the answer, and how many attempts it took.
import { createKeel } from "evenkeel";

let attempts = 0;
const keel = createKeel({
  ledger(record) {
    if (record.type === "call") attempts = record.attempts;
  },
});

async function main() {
  const { BASE_URL = "https://api.openai.com/v1", OPENAI_API_KEY = "" } = process.env;
  const response = await keel.fetch(`${BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${OPENAI_API_KEY}` },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Say hello." }] }),
  });
  const { choices } = await response.json();
  await keel.flush();
  console.log(JSON.stringify({ answer: choices[0].message.content, attempts }));
}

main();
