import { createKeel } from "evenkeel";
import { fakeClock, openai, scriptedUpstream } from "evenkeel/testing";
import { expect, test } from "vitest";

test("a stream that breaks after its first words ends in an error, never as if it were whole", async () => {
  const clock = fakeClock();
  const upstream = scriptedUpstream([{ ...openai.chatStream("one two three"), cutAt: 600, end: "reset" }], { clock });
  const keel = createKeel({ fetch: upstream.fetch, clock, seed: 1 });

  const reading = clock.run(async () => {
    const body = JSON.stringify({ model: "gpt-5", stream: true, messages: [] });
    const response = await keel.fetch("https://api.openai.com/v1/chat/completions", { method: "POST", body });
    return response.text();
  });

  await expect(reading).rejects.toThrow(/stream_interrupted|connection_error/);
});
