/** What was read of a stream before its commit point: kept until it is known whether the caller gets it. */
import { ACTION, DO } from "./core-handle.js";
import { concat } from "./request.js";

/** A stream and its beginning. */
export class Held {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly chunks: Uint8Array[] = [];
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
    return concat(this.chunks, sizeOf(this.chunks)) as Uint8Array<ArrayBuffer>;
  }

  /** All that came. */
  seen(): Uint8Array {
    const chunks = this.#all(Number.POSITIVE_INFINITY);
    return concat(chunks, sizeOf(chunks));
  }

  cancel(reason?: unknown): void {
    this.reader.cancel(reason).catch(ignore);
  }

  /** The beginning of a stream that failed, with the error event that the upstream sent: `pass` bytes of the last chunk. */
  broken(pass: number, error: unknown): ReadableStream<Uint8Array<ArrayBuffer>> {
    const chunks = this.#all(pass);
    let at = 0;
    return new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        pull(controller) {
          const next = chunks[at];
          at += 1;
          if (next === undefined) controller.error(error);
          else if (next.byteLength > 0) controller.enqueue(next as Uint8Array<ArrayBuffer>);
        },
      },
      { highWaterMark: 0 },
    );
  }

  #all(pass: number): readonly Uint8Array[] {
    const last = this.#last;
    return last === undefined ? this.chunks : [...this.chunks, last.subarray(0, pass)];
  }
}

function sizeOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((size, chunk) => size + chunk.byteLength, 0);
}

function ignore(): void {}
