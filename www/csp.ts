/** The page's Content-Security-Policy: nothing inline, nothing from elsewhere, and WebAssembly but no `eval`. */
const BASE = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
];

/** Built, the page may not open a single connection. */
export const PAGE = [...BASE, "connect-src 'none'"].join("; ");

/** In the dev server it may talk to that one, which tells it of changed files. */
export const DEV = [...BASE, "connect-src 'self'"].join("; ");

/** What only a header can say. */
export const HEADER_ONLY = "frame-ancestors 'none'";
