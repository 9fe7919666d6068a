/** What was read of a stream before its commit point: kept until it is known whether the caller gets it. */

import { Chunks } from "./chunks.js";
import { ACTION, DO } from "./core-handle.js";
import { ignore } from "./ignore.js";
import { concat } from "./request.js";

/** A stream and its beginning. */
export class Held {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly chunks = new Chunks();
  /** The chunk that failed it. */
  #last: Uint8Array | undefined;

  constructor(body: ReadableStream<Uint8Array>) {
    this.reader = body.getReader();
  }

  /** Keeps a chunk, of which the core has said `code`. */
  keep(chunk: Uint8Array, code: number): void {
    const action = code & ACTION;
    if (action === DO.CONTINUE || action === DO.COMMIT) this.chunks.push(chunk);
    else this.#last = chunk;
  }

  /** All that was kept, but for the chunk that failed it. */
  bytes(): Uint8Array<ArrayBuffer> {
    return this.chunks.bytes() as Uint8Array<ArrayBuffer>;
  }

  /** All that came. */
  seen(): Uint8Array {
    const kept = this.chunks.bytes();
    const last = this.#last;
    return last === undefined ? kept : concat([kept, last]);
  }

  cancel(reason?: unknown): void {
    this.reader.cancel(reason).catch(ignore);
  }

  /** The beginning of a stream that failed, with the error event that the upstream sent: `pass` bytes of the last chunk. */
  broken(pass: number, error: unknown): ReadableStream<Uint8Array<ArrayBuffer>> {
    this.#end(pass);
    const { chunks } = this;
    return new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        pull(controller) {
          const next = chunks.next();
          if (next === undefined) controller.error(error);
          else controller.enqueue(next as Uint8Array<ArrayBuffer>);
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Adds what the reader gets of the chunk that failed it. */
  #end(pass: number): void {
    const last = this.#last?.subarray(0, pass);
    this.#last = undefined;
    if (last !== undefined) this.chunks.push(last);
  }
}
