/**
 * What a person has in the clipboard, made a case: the answer as `curl -i` or `curl -v` prints it, the body alone, an
 * SDK's error line (`RateLimitError: 429 {…}`), or the text of a transport error.
 */

/** What was found in a pasted text. */
export interface Pasted {
  /** `null`: the text names none. */
  readonly status: number | null;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  /** A transport's error, in the form that the core reads; `null` if it is an answer. */
  readonly error: { readonly name: string; readonly code: string; readonly message: string } | null;
}

const STATUS_LINE = /^HTTP\/[\d.]+ (\d{3})\b/;
const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/;
/** `Error: 429 {"error":…}` of the OpenAI and Anthropic SDKs, `[429 Too Many Requests] …` of Google's. */
const SDK_ERROR =
  /^(?:Uncaught )?(?:[\w.]*(?:Error|Exception)[\w.]*: )?(?:.{0,200}?\[)?([1-5]\d\d)(?: [A-Z][A-Za-z ]{2,30}\])?[ :\]-]+(.*)$/s;
/** `ECONNREFUSED`, `UND_ERR_SOCKET`, `CERT_HAS_EXPIRED`. */
const CODE = /\b(E[A-Z]{3,}(?:_[A-Z]+)*|UND_ERR_[A-Z_]+|CERT_[A-Z_]+|[A-Z]+(?:_[A-Z]+)*_CERT[A-Z_]*)\b/;
const ERROR_NAME = /^\s*(?:Uncaught )?([A-Z]\w*(?:Error|Exception))\b:?/;

/** Reads a pasted text. */
export function readPasted(text: string): Pasted {
  const answer = readAnswer(text);
  if (answer !== null) return answer;
  const trimmed = text.trim();
  if (/^[{[<]/.test(trimmed) || /^(?:data|event|id|error):/.test(trimmed)) {
    return { status: null, headers: [], body: trimmed, error: null };
  }
  const sdk = SDK_ERROR.exec(trimmed);
  if (sdk !== null) return { status: Number(sdk[1]), headers: [], body: bodyOf(sdk[2] ?? ""), error: null };
  const name = ERROR_NAME.exec(trimmed)?.[1] ?? "Error";
  return {
    status: null,
    headers: [],
    body: "",
    error: { name, code: CODE.exec(trimmed)?.[1] ?? "", message: trimmed },
  };
}

/**
 * The body that an SDK's error was made from. What it prints is the message alone, or with the error's members after it
 * (`code: 'insufficient_quota'`), as `console.error` shows an object.
 */
function bodyOf(text: string): string {
  if (/^[{[<]/.test(text)) return text;
  const member = (name: string): string | null => new RegExp(`\\b${name}: '([^']{1,80})'`).exec(text)?.[1] ?? null;
  const message = text.split(/\n\s+at /, 1)[0] ?? text;
  return JSON.stringify({ error: { message, code: member("code"), type: member("type") } });
}

/** The last answer of `curl -i` or `curl -v`: those before it are redirects, proxies and `100 Continue`. */
function readAnswer(text: string): Pasted | null {
  const verbose = /^< HTTP\//m.test(text);
  const lines = text.split(/\r?\n/);
  let found: { status: number; headers: [string, string][] } | undefined;
  let bodyAt = lines.length;
  for (let at = 0; at < lines.length; at += 1) {
    const status = STATUS_LINE.exec(unquote(lines[at] ?? "", verbose));
    if (status === null) continue;
    const headers: [string, string][] = [];
    for (at += 1; at < lines.length; at += 1) {
      const header = HEADER.exec(unquote(lines[at] ?? "", verbose));
      if (header === null) break;
      headers.push([header[1] ?? "", header[2] ?? ""]);
    }
    found = { status: Number(status[1]), headers };
    bodyAt = at + 1;
    // After the headers of a final answer everything is its body, whatever it looks like.
    const next = unquote(lines[bodyAt] ?? "", verbose);
    if (!STATUS_LINE.test(next) && !verbose) break;
    if (STATUS_LINE.test(next)) at = bodyAt - 1;
  }
  if (found === undefined) return null;
  const rest = lines.slice(bodyAt);
  const body = verbose ? rest.filter((line) => !/^(?:[*<>{}] |[*<>]$|\[\d+ bytes data\]|[{}] \[)/.test(line)) : rest;
  return { ...found, body: body.join("\n").trim(), error: null };
}

function unquote(line: string, verbose: boolean): string {
  return verbose && line.startsWith("< ") ? line.slice(2) : line;
}
