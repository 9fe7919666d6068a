/**
 * What came of a body, in order. An upstream decides how long its chunks are: each costs a hundred bytes and more beside what
 * is in it, so many short ones become one.
 */
import { concat } from "./request.js";

/** A chunk of fewer bytes is a short one. */
const SHORT = 1_024;
/** So many short ones in a row become one. */
const RUN = 64;

const NOTHING = new Uint8Array(0);

/** Chunks that are kept, and then given out. */
export class Chunks {
  /** Bytes of all that was put in. */
  size = 0;
  readonly #kept: Uint8Array[] = [];
  /** How many were given out. */
  #given = 0;
  /** Short ones at the end. */
  #short = 0;

  push(chunk: Uint8Array): void {
    const { byteLength } = chunk;
    // A reader that is given nothing does not ask again.
    if (!(byteLength > 0)) return;
    this.size += byteLength;
    this.#kept.push(chunk);
    this.#short = byteLength < SHORT ? this.#short + 1 : 0;
    if (this.#short === RUN) {
      this.#short = 0;
      this.#kept.push(concat(this.#kept.splice(-RUN)));
    }
  }

  /** The next one, which is not kept any longer; `undefined` when all were given out. */
  next(): Uint8Array | undefined {
    const chunk = this.#kept[this.#given];
    if (chunk === undefined) return undefined;
    this.#kept[this.#given] = NOTHING;
    this.#given += 1;
    return chunk;
  }

  /** All of them as one. */
  bytes(): Uint8Array {
    return concat(this.#kept);
  }
}
