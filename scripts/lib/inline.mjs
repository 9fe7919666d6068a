// The core as text in JavaScript, and what turns it back into bytes.
//
// Base64 makes four letters of three bytes and hides from gzip what repeats: the module was 28 % larger to download that
// way. Here a byte is one letter if it is a frequent one, else two, so gzip finds what it finds in the wasm itself. The way
// back is a WebAssembly module of some five hundred bytes, since a loop in JavaScript is slow the one time that it runs.

import { readFileSync } from "node:fs";
import binaryen from "binaryen";
import { Stop } from "./run.mjs";

/** Letters: ASCII that no tool needs to escape, in whichever kind of quotes it writes a string. */
const LETTERS = Array.from({ length: 95 }, (_, at) => at + 32).filter((code) => !"\"'`\\$<".includes(chr(code)));
/** The last two begin a pair. */
const SINGLE = LETTERS.length - 2;
const [FIRST, SECOND] = LETTERS.slice(SINGLE);
/** Where the text lies in the decoder's memory: behind a table for letters that stand alone, and one for each kind of pair. */
const START = 384;

/** The source of `core.inline.js`. */
export function inlineSource(file) {
  const bytes = readFileSync(file);
  const { text, table } = encode(bytes);
  const decoder = assemble(table, text.length);
  if (!decode(decoder, text).equals(bytes))
    throw new Stop(`${file} does not come back from its inlined form as it was`);
  return (
    `export const text = ${JSON.stringify(text)};\n` +
    `export const decoder = "${Buffer.from(decoder).toString("base64")}";\n` +
    `export const start = ${START};\n`
  );
}

/** What `core.inline.js` exports. */
export const INLINE_TYPES = `/** The core, a letter or two a byte. */
export declare const text: string;
/** The module that turns the text into bytes, as base64. It exports \`memory\` and \`decode\`. */
export declare const decoder: string;
/** Where in that memory the text has to be put, and the bytes are found. */
export declare const start: number;
`;

function encode(bytes) {
  const count = new Array(256).fill(0);
  for (const byte of bytes) count[byte] += 1;
  const byFrequency = [...count.keys()].sort((a, b) => count[b] - count[a] || a - b);
  const table = new Uint8Array(START);
  const letters = new Array(256);
  for (const [rank, byte] of byFrequency.entries()) {
    const at = rank - SINGLE;
    const code = at < 0 ? LETTERS[rank] : LETTERS[at % LETTERS.length];
    const kind = at < 0 ? 0 : 1 + Math.floor(at / LETTERS.length);
    letters[byte] = (kind === 0 ? "" : chr(FIRST + kind - 1)) + chr(code);
    table[kind * 128 + code] = byte;
  }
  return { text: Array.from(bytes, (byte) => letters[byte]).join(""), table };
}

/** The decoder: takes the end of the text, and puts the bytes where the text was, which is never shorter. Gives their number. */
function assemble(table, length) {
  if (SECOND !== FIRST + 1) throw new Stop("the two letters that begin a pair are not neighbours");
  const data = Array.from(table, (byte) => `\\${byte.toString(16).padStart(2, "0")}`).join("");
  const module = binaryen.parseText(`(module
    (memory (export "memory") ${Math.ceil((START + length) / 65_536)})
    (data (i32.const 0) "${data}")
    (func (export "decode") (param $end i32) (result i32) (local $from i32) (local $to i32) (local $letter i32)
      (local.set $from (i32.const ${START}))
      (local.set $to (i32.const ${START}))
      (loop $next
        (local.set $letter (i32.load8_u (local.get $from)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (if (i32.ge_u (local.get $letter) (i32.const ${FIRST})) (then
          (local.set $letter (i32.add
            (i32.shl (i32.sub (local.get $letter) (i32.const ${FIRST - 1})) (i32.const 7))
            (i32.load8_u (local.get $from))))
          (local.set $from (i32.add (local.get $from) (i32.const 1)))))
        (i32.store8 (local.get $to) (i32.load8_u (local.get $letter)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $from) (local.get $end))))
      (i32.sub (local.get $to) (i32.const ${START}))))`);
  module.optimize();
  return module.emitBinary();
}

/** As `pkg/src/entry.inline.ts` does it. */
function decode(decoder, text) {
  const { memory, decode } = new WebAssembly.Instance(new WebAssembly.Module(decoder)).exports;
  const { written } = new TextEncoder().encodeInto(text, new Uint8Array(memory.buffer, START));
  return Buffer.from(memory.buffer, START, decode(START + written));
}

function chr(code) {
  return String.fromCharCode(code);
}
