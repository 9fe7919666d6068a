/** The business code of this page: asks once, reads what it gets, and knows nothing of attempts. */
import { KeelError } from "evenkeel";
import type { CallerState } from "./state.js";

/** Reads an answer to its end into `caller`; never rejects. */
export async function read(answer: Promise<Response>, caller: CallerState, now: () => number): Promise<void> {
  try {
    const response = await answer;
    caller.headAt = now();
    caller.httpStatus = response.status;
    caller.outcome = "reading";
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) await readStream(response, caller);
    else await readWhole(response, caller);
  } catch (error) {
    caller.outcome = caller.text === "" ? "error" : "broken";
    caller.message ??= words(error);
  }
  caller.endedAt = now();
}

async function readWhole(response: Response, caller: CallerState): Promise<void> {
  const body = (await response.json()) as {
    choices?: { message: { content: string } }[];
    content?: { text: string }[];
    error?: { message: string };
  };
  if (response.ok) {
    caller.text = body.choices?.[0]?.message.content ?? body.content?.[0]?.text ?? "";
    caller.outcome = "answer";
    return;
  }
  const noRetry = response.headers.get("x-should-retry") === "false" ? " With it: x-should-retry: false." : "";
  caller.outcome = "error";
  caller.message = `The provider's own answer, HTTP ${response.status}: ${body.error?.message ?? ""}${noRetry}`;
}

interface StreamEvent {
  readonly type?: string;
  readonly delta?: { readonly text?: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[];
  readonly error?: { readonly message: string };
}

async function readStream(response: Response, caller: CallerState): Promise<void> {
  const decoder = new TextDecoder();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    rest += decoder.decode(part.value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: {")) take(JSON.parse(line.slice(6)) as StreamEvent, caller);
    }
  }
  caller.outcome = "answer";
}

function take(event: StreamEvent, caller: CallerState): void {
  caller.text += event.delta?.text ?? event.choices?.[0]?.delta.content ?? "";
  if (event.error !== undefined) caller.message = `The stream's own error event: ${event.error.message}`;
}

function words(error: unknown): string {
  if (error instanceof KeelError) return `KeelError: ${error.message}`;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
