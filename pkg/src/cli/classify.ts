/** `evenkeel classify`: JSON Lines in, a line of JSON out for each, in order. Memory is bounded whatever comes in. */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import process from "node:process";
import { BadCase, type Case, caseOf, judge } from "./case.js";
import { flags, Misuse } from "./flags.js";

/** What `evenkeel classify --help` says. */
export const CLASSIFY_USAGE = `usage: evenkeel classify [--rules FILE] < failures.jsonl

Reads one failure a line, as JSON:

  { "provider"?, "protocol"?, "url"?, "status"?, "headers"?, "body"?, "stream"?, "error"?, "now"? }

  provider   such as "openai"; told by the url's host if absent
  protocol   such as "openai.chat"; told by the url's path if absent
  status     HTTP status; absent if there was no answer
  headers    an object; names in any case, values strings or arrays of them
  body       the answer's body, as text
  stream     true: the body is what a stream delivered after its head
  error      what the transport threw: { "name", "code", "message", "cause" }
  now        RFC 3339, for wait hints that are dates; default: the time it is

Prints for each, in order, one line:

  { "class", "retryable", "scope", "wait_hint_ms", "reason", "rule", "action" }

  action     what keel.fetch with its defaults does after a first attempt:
             "retry"    sends the request again, after wait_hint_ms or a backoff
             "return"   gives the provider's answer to the caller, as it came
             "fail"     ends in an error: there is no answer to give, or a part
                        of it had reached the caller before the stream broke

A success is { "class": null }. A line that cannot be read gives { "error": … } in its place, and exit status 1 at the
end. Empty lines are passed over.

  --rules FILE   rules of your own, a JSON array, tried before those built in
`;

/** Longest line that is read. */
const MAX_LINE = 4 * 1024 * 1024;
const LINE_FEED = 10;

/** Runs the command. */
export async function classifyLines(args: string[]): Promise<number> {
  const { rules: file } = flags(args, { rules: "text" });
  const rules = file === undefined ? "" : rulesIn(file);
  if (process.stdin.isTTY === true)
    process.stderr.write("evenkeel classify: reading failures, one a line; Ctrl-D ends\n");
  let status = 0;
  let number = 0;
  for await (const line of linesOf(process.stdin)) {
    number += 1;
    const answer =
      line === null ? { error: `line ${number}: longer than ${MAX_LINE} bytes` } : answerTo(line, number, rules);
    if (answer === undefined) continue;
    if ("error" in answer) status = 1;
    if (!process.stdout.write(`${JSON.stringify(answer)}\n`)) await once(process.stdout, "drain");
  }
  return status;
}

/** The line of a case; `undefined` for an empty one. */
function answerTo(line: string, number: number, rules: string): object | undefined {
  const text = number === 1 ? line.replace(/^\ufeff/, "") : line;
  if (text.trim() === "") return undefined;
  try {
    return asLine(caseOf(JSON.parse(text), Date.now), rules);
  } catch (error) {
    if (error instanceof BadCase) return { error: `line ${number}: ${error.message}` };
    if (error instanceof SyntaxError) return { error: `line ${number}: not JSON: ${error.message}` };
    throw error;
  }
}

/** The verdict on a case, in the names of the records. */
export function asLine(one: Case, rules = ""): object {
  const found = judge(one, rules);
  if (found === null) return { class: null };
  const { class: kind, retryable, scope, waitHintMs, reason, rule, action } = found;
  return { class: kind, retryable, scope, wait_hint_ms: waitHintMs, reason, rule, action };
}

/** The text of a file of rules, which the core has found good. */
export function rulesIn(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new Misuse(`--rules ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  try {
    judge(
      { provider: "", protocol: "", url: "", status: 500, headers: "", body: "", stream: false, error: "", now: 0 },
      text,
    );
  } catch (error) {
    throw new Misuse(`--rules ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return text;
}

/** Lines as text, without their ends; `null` for one that is too long, whose bytes are not kept. */
async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<string | null> {
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (): string | null => {
    const line = size > MAX_LINE ? null : utf8.decode(Buffer.concat(parts));
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of input) {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, from);
      const part = chunk.subarray(from, end === -1 ? chunk.length : end);
      size += part.length;
      if (size <= MAX_LINE) parts.push(part);
      else parts = [];
      if (end === -1) break;
      yield take();
      from = end + 1;
    }
  }
  if (size > 0) yield take();
}
