/** `evenkeel explain`: one failure, told to a person. */
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import process from "node:process";
import type { ErrorClass, Scope } from "../types.js";
import { BadCase, type Case, caseOf, type Judgement, judge } from "./case.js";
import { rulesIn } from "./classify.js";
import { flags, Misuse } from "./flags.js";
import { readPasted } from "./paste.js";
import { PROVIDERS, RULES } from "./rules.js";

/** What `evenkeel explain --help` says. */
export const EXPLAIN_USAGE = `usage: evenkeel explain [options]
       curl -i … | evenkeel explain [options]

Says what an error is, why, what evenkeel would do about it, and what you should do. Without --status and --body it reads
standard input: an answer as \`curl -i\` prints it, an answer's body, an SDK's error line, or a transport's error.

  --status N           HTTP status
  --header 'name: v'   a header of the answer; as often as needed
  --body TEXT          the answer's body; @FILE reads it from a file
  --provider NAME      such as openai; without it the generic rules judge
  --protocol NAME      such as openai.chat or anthropic.messages
  --url URL            where the request went: tells provider and protocol
  --stream             the body is what a stream delivered after its head
  --now TIME           RFC 3339, for wait hints that are dates
  --rules FILE         rules of your own, a JSON array, tried before those built in
`;

const CLASSES: Readonly<Record<ErrorClass, string>> = {
  bad_request: "The request itself is at fault.",
  auth_error: "The key is missing, malformed, expired or revoked.",
  permission_error: "The key is known, but it may not do this.",
  not_found: "The model, the deployment or the URL does not exist.",
  request_too_large: "The request has too many tokens or bytes.",
  content_filtered: "A safety system refused the prompt or the answer.",
  rate_limited: "A limit over a short time was reached. Waiting helps.",
  quota_exhausted: "Money or a quota over a long time is used up. Waiting minutes does not help.",
  overloaded: "The provider has no capacity for this model right now.",
  server_error: "The provider failed.",
  timeout: "No answer came in time.",
  connection_error: "The connection could not be made, or broke before the answer was whole.",
  stream_interrupted: "The answer began, and broke off.",
  cancelled: "The caller gave up. The provider is not to blame.",
  unknown: "No rule knows this failure.",
};

const SCOPES: Readonly<Record<Scope, string>> = {
  request: "this request alone",
  key: "the key, or the account it belongs to",
  bucket: "what the provider counts the limit against: organisation or project, and model",
  model: "the model at this provider",
  provider: "everything at this provider's address",
};

/** The longest pasted text that is read. */
const MAX_INPUT = 16 * 1024 * 1024;
const WIDTH = 100;
const INDENT = 14;

/** Runs the command. */
export async function explain(args: string[]): Promise<number> {
  const given = flags(args, {
    status: "text",
    header: "texts",
    body: "text",
    provider: "text",
    protocol: "text",
    url: "text",
    stream: "switch",
    now: "text",
    rules: "text",
  });
  const rules = given.rules === undefined ? "" : rulesIn(given.rules);
  // With rules of one's own there may be a provider of one's own.
  if (given.provider !== undefined && rules === "") providerFlag(given.provider);
  if (given.url !== undefined && !URL.canParse(given.url))
    throw new Misuse(`--url: expected an absolute URL, got ${JSON.stringify(given.url)}`);
  const fromFlags = given.status !== undefined || given.body !== undefined;
  if (!fromFlags && process.stdin.isTTY) {
    throw new Misuse("give --status and --body, or the answer on standard input");
  }
  const pasted = fromFlags ? undefined : readPasted(await inputText());
  const status = given.status === undefined ? (pasted?.status ?? null) : statusFlag(given.status);
  const body = given.body === undefined ? (pasted?.body ?? "") : bodyFlag(given.body);
  const error = pasted?.error ?? null;
  if (status === null && (error === null ? body : error.message).trim() === "")
    throw new Misuse("there is nothing to explain on standard input");
  const looksStreamed = /^\s*(?::|data:|event:)/.test(body);
  const known: Case = caseFrom({
    provider: given.provider,
    protocol: given.protocol,
    url: given.url,
    now: given.now,
    // A body without a status is judged by what it says.
    status: status ?? (error === null ? 200 : null),
    headers: [...(pasted?.headers ?? []), ...(given.header ?? []).map(headerFlag)],
    body,
    error,
    stream: given.stream === true || looksStreamed,
  });
  const verdict = judge(known, rules);
  const guessed = status === null && error === null;
  process.stdout.write(page(known, verdict, guessed));
  return 0;
}

function caseFrom(value: Readonly<Record<string, unknown>>): Case {
  try {
    return caseOf(value, Date.now);
  } catch (error) {
    if (error instanceof BadCase) throw new Misuse(`--${error.message}`);
    throw error;
  }
}

function providerFlag(text: string): void {
  if (Object.hasOwn(PROVIDERS, text.trim().toLowerCase())) return;
  const names = Object.keys(PROVIDERS).join(", ");
  throw new Misuse(
    `--provider: there is no provider ${JSON.stringify(text)}; there are ${names}. ` +
      "For one that speaks the protocol of another give --protocol alone",
  );
}

function statusFlag(text: string): number {
  const status = Number(text);
  if (!/^\d{3}$/.test(text) || status < 100 || status > 599) {
    throw new Misuse(`--status: expected a number from 100 to 599, got ${JSON.stringify(text)}`);
  }
  return status;
}

function headerFlag(text: string): [string, string] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new Misuse(`--header: expected 'name: value', got ${JSON.stringify(text)}`);
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function bodyFlag(text: string): string {
  if (!text.startsWith("@")) return text;
  try {
    return readFileSync(text.slice(1), "utf8");
  } catch (error) {
    throw new Misuse(`--body ${text}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function inputText(): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of process.stdin) {
    size += part.length;
    if (size > MAX_INPUT) throw new Misuse(`standard input is longer than ${MAX_INPUT} bytes`);
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  const text = new TextDecoder().decode(bytes);
  // Gzip's magic number stands behind the head of a pasted answer, or at the beginning.
  if (text.includes("\u001f\ufffd\u0008"))
    throw new Misuse("standard input is compressed; curl decompresses with --compressed");
  if (text.includes("\u0000")) throw new Misuse("standard input is not text");
  return text;
}

/** What is printed. */
function page(one: Case, found: Judgement | null, guessed: boolean): string {
  if (found === null) {
    const what = guessed
      ? "Nothing in this body says that it is a failure. With --status the answer may be another."
      : "This is a success.";
    return `${strong("no failure")}${row("What", what)}`;
  }
  const [matches, source, advice] = RULES[found.rule] ?? ["a rule of your own", "", ""];
  const provider = found.rule.slice(0, found.rule.lastIndexOf("."));
  const unnamed = one.provider === "" && one.url === "" && !Object.hasOwn(PROVIDERS, provider);
  return [
    strong(`${found.class} (${found.reason})`),
    row("What", CLASSES[found.class]),
    row("Concerns", SCOPES[found.scope]),
    row("Why", `rule ${found.rule}: ${matches}${guessed ? " (no status was given: judged by the body alone)" : ""}`),
    source === "" ? "" : row("Source", source),
    row("Wait hint", found.waitHintMs === null ? "none" : span(found.waitHintMs)),
    row("evenkeel", plan(found, one)),
    row("You", sentence(advice === "" ? "see the rule that matched" : advice)),
    unnamed && found.class !== "cancelled" && one.status !== null
      ? row("Note", "no provider was named, so the generic rules judged; --provider or --url may tell more")
      : "",
  ].join("");
}

/** What a keel with its defaults does, in words. */
function plan(found: Judgement, one: Case): string {
  const answer =
    one.status === null ? "ends the call with a KeelError" : "gives the provider's answer to the caller as it came";
  if (found.action === "retry") {
    const wait =
      found.waitHintMs === null
        ? `after a backoff (at random, up to ${found.class === "overloaded" ? "1 s, then 2 s" : "0.5 s, then 1 s"})`
        : `after ${span(found.waitHintMs)} and a little more`;
    return `sends the request again ${wait}, at most 3 attempts in all, while the deadline and the retry budget allow; then it ${answer}`;
  }
  if (found.committed && found.action === "fail") {
    return "sends nothing again, since a part of the answer has reached the caller; its stream ends in an error, never as if it were whole";
  }
  if (found.limit === "wait_too_long") {
    return `does not wait that long (retry.maxWaitMs is 60 s) and never comes back earlier than told: it ${answer}, and says when to try again`;
  }
  if (found.class === "cancelled") return "sends nothing again: the caller's own cancellation goes back to it";
  if (found.limit !== "") return `would send it again, but for ${found.limit}: it ${answer}`;
  const why = found.class === "unknown" ? "nobody knows whether that would help" : "it would fail again";
  return `sends nothing again, since ${why}: it ${answer}`;
}

/** Milliseconds for a person. */
function span(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 6_000) / 10} min`;
  return `${Math.round(ms / 360_000) / 10} h`;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function row(label: string, text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > WIDTH - INDENT) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  lines.push(line);
  return `  ${label.padEnd(INDENT - 2)}${lines.join(`\n${" ".repeat(INDENT)}`)}\n`;
}

function strong(text: string): string {
  const plain = process.stdout.isTTY !== true || process.env["NO_COLOR"] !== undefined;
  return plain ? `${text}\n` : `\u001b[1m${text}\u001b[0m\n`;
}
