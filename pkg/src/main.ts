/**
 * All that the entries share, which the build puts into one file: a program reads one module instead of thirty, and
 * whichever entries it imports, there is one core and one class of each error. What is named here and not in `index.ts` is
 * for entries and the command line alone.
 */
export { PROTOCOLS } from "./config.js";
export { classify } from "./core.js";
export * from "./index.js";
export { install, provide, requireCore } from "./load.js";
export { render } from "./policy.js";
export { packError } from "./transport.js";
