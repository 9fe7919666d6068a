/** The body of an answer that is read before it is given on. */
import { Chunks } from "./chunks.js";

/** What was read of an answer. */
export interface Read {
  readonly bytes: Uint8Array;
  /** The rest, where the answer is longer than what may be kept. */
  readonly rest: AsyncIterator<Uint8Array, void, undefined> | null;
}

/** What came of a body, and when the last of it, in the clock's time, negative if nothing has; the core asks when its timer fires. */
export interface Progress {
  bytes: number;
  byteAt: number;
  contentAt: number;
}

/** Reads a body to its end, or to `cap` bytes. */
export async function readBody(response: Response, cap: number, progress: Progress, now: () => number): Promise<Read> {
  const body = response.body;
  if (body === null || body === undefined) {
    // Some test doubles have no stream; what they have is read as a whole.
    const bytes =
      typeof response.arrayBuffer === "function" && body === undefined
        ? new Uint8Array(await response.arrayBuffer())
        : new Uint8Array(0);
    return { bytes, rest: null };
  }
  const reader = body.getReader();
  const chunks = new Chunks();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: chunks.bytes(), rest: null };
    chunks.push(value);
    progress.bytes = chunks.size;
    progress.byteAt = now();
    if (!isBlank(value)) progress.contentAt = progress.byteAt;
    if (chunks.size > cap) return { bytes: chunks.bytes(), rest: restOf(reader) };
  }
}

function restOf(reader: ReadableStreamDefaultReader<Uint8Array>): AsyncIterator<Uint8Array, void, undefined> {
  return {
    next: async () => {
      const more = await reader.read();
      return more.done ? { done: true, value: undefined } : { done: false, value: more.value };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** Whether there is nothing but blanks and line ends in it. */
function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 32 || byte === 10 || byte === 13 || byte === 9);
}
