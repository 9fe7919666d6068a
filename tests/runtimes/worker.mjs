// Entry for Workers: the suite as the answer to a request.

import { conformance } from "./main.mjs";

export default {
  async fetch() {
    return Response.json(await conformance());
  },
};
