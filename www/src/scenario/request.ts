/** The one question that every trouble is played with, in the words of each API. */
import type { Trouble } from "./trouble.js";

const QUESTION = "What does a keel do?";

/** The request as a caller would give it to `fetch`. */
export function requestOf({ api, stream }: Trouble): { url: string; init: RequestInit } {
  const messages = [{ role: "user", content: QUESTION }];
  const headers = { "content-type": "application/json" };
  if (api === "anthropic") {
    const body = JSON.stringify({ model: "claude-sonnet-4-5", max_tokens: 64, messages, stream });
    return { url: "https://api.anthropic.com/v1/messages", init: { method: "POST", headers, body } };
  }
  const body = JSON.stringify({ model: "gpt-5", messages, stream });
  return { url: "https://api.openai.com/v1/chat/completions", init: { method: "POST", headers, body } };
}
