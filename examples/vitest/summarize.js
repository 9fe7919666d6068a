// The code under test: takes the `fetch` that it uses, and gives a sentence where there is no answer.
export async function summarize(text, fetch) {
  const response = await fetch("https://api.openai.com/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content: `Summarize: ${text}` }] }),
  });
  if (!response.ok) return "No summary right now.";
  return (await response.json()).choices[0].message.content;
}
