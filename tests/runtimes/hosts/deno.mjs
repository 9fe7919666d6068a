// Deno, without any permission.

import { environment } from "../../../scripts/lib/run.mjs";
import { binary, resultOf, stage } from "../lib/tools.mjs";

export default {
  async deno() {
    const folder = await stage("deno");
    const env = environment({ DENO_NO_UPDATE_CHECK: "1", DENO_NO_PROMPT: "1", NO_COLOR: "1" });
    return resultOf(binary("deno"), ["run", "--quiet", "--node-modules-dir=manual", "--no-remote", "print.mjs"], {
      cwd: folder,
      env,
    });
  },
};
