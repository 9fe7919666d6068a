/**
 * `evenkeel/slim`: everything but the wasm, for those who place the file themselves. Call {@link install} once, before
 * the first `createKeel`.
 *
 * @module
 */
export * from "./index.js";
export { install } from "./load.js";
