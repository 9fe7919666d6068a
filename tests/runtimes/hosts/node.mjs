// Node, by its npm package, so that all versions are tested wherever this runs.

import { binary, resultOf, stage } from "../lib/tools.mjs";

const node = (name) => async () => {
  const folder = await stage(name);
  return resultOf(binary(name), ["print.mjs"], { cwd: folder });
};

export default { node20: node("node20"), node22: node("node22"), node24: node("node24") };
