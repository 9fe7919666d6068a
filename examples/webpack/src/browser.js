// Asks through evenkeel and shows the answer, and how many attempts it took. Give `/v1` to a server of yours that holds
// the provider's key: a key has no place in a page.
import { createKeel } from "evenkeel";

let attempts = 0;
const keel = createKeel({
  ledger(record) {
    if (record.type === "call") attempts = record.attempts;
  },
});

async function main() {
  const response = await keel.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: "Say hello." }] }),
  });
  const { choices } = await response.json();
  await keel.flush();
  document.querySelector("output").textContent = JSON.stringify({ answer: choices[0].message.content, attempts });
}

main();
