// The call bench as a Worker. Its clock stands still between I/O, so the time is taken by who asks: `/?name=…&calls=…`
// makes so many calls and answers, without a query it answers with the names.

import { contenders } from "./contenders.mjs";
import { libraries } from "./libraries.mjs";

let all;

export default {
  async fetch(request) {
    // Not at module scope, where no library may draw randomness.
    all ??= contenders(libraries);
    const { searchParams } = new URL(request.url);
    const name = searchParams.get("name");
    if (name === null) return Response.json(Object.keys(all));
    await all[name]?.(Number(searchParams.get("calls")));
    return new Response("done");
  },
};
