/** Sits between the keel and the upstream, like the network panel of a browser: notes what passes, changes nothing. */
import type { AttemptState } from "./state.js";

/** A `fetch` that keeps `attempts` up to date; `now` counts from the call's start. */
export function observed(inner: typeof fetch, attempts: AttemptState[], now: () => number): typeof fetch {
  return async (input, init) => {
    const attempt: AttemptState = {
      no: attempts.length + 1,
      sentAt: now(),
      headAt: null,
      httpStatus: null,
      streamed: false,
      chunksAt: [],
      endedAt: null,
      record: null,
    };
    attempts.push(attempt);
    const end = (): void => {
      attempt.endedAt ??= now();
    };
    try {
      const response = await inner(input, init);
      attempt.headAt = now();
      attempt.httpStatus = response.status;
      attempt.streamed = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
      if (response.body === null) {
        end();
        return response;
      }
      const { status, statusText, headers } = response;
      return new Response(
        passing(response.body, () => void attempt.chunksAt.push(now()), end),
        {
          status,
          statusText,
          headers,
        },
      );
    } catch (error) {
      end();
      throw error;
    }
  };
}

/** The same bytes, with a word when some came and when there are no more. */
function passing(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  came: () => void,
  end: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            end();
            controller.close();
          } else {
            came();
            controller.enqueue(value);
          }
        } catch (error) {
          end();
          controller.error(error);
        }
      },
      cancel(reason) {
        end();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
