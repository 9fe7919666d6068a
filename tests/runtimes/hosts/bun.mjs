// Bun.

import { binary, resultOf, stage } from "../lib/tools.mjs";

export default {
  async bun() {
    const folder = await stage("bun");
    return resultOf(binary("bun"), ["run", "print.mjs"], { cwd: folder });
  },
};
