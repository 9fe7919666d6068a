/**
 * What the command line uses of Node, and no more: with `@types/node` in the program, `process` and Node's own `fetch`
 * types would be there for the whole package, which must not know of them.
 */

declare module "node:buffer" {
  export const Buffer: { concat(parts: readonly Uint8Array[]): Uint8Array };
}

declare module "node:events" {
  export function once(emitter: object, event: string): Promise<unknown[]>;
}

declare module "node:fs" {
  export function readFileSync(path: string | URL, encoding: "utf8"): string;
}

declare module "node:process" {
  interface Output {
    readonly isTTY?: boolean;
    write(text: string): boolean;
    on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
  }
  const process: {
    readonly argv: readonly string[];
    readonly env: Readonly<Record<string, string | undefined>>;
    exitCode: number | undefined;
    exit(code: number): never;
    readonly stdin: AsyncIterable<Uint8Array> & { readonly isTTY?: boolean };
    readonly stdout: Output;
    readonly stderr: Output;
  };
  export default process;
}

declare module "node:util" {
  /** The values of `--name value` (string), `--name` (boolean), and of those that may be given several times. */
  export function parseArgs(config: {
    args: string[];
    options: Readonly<Record<string, { readonly type: "string" | "boolean"; readonly multiple?: boolean }>>;
    strict: true;
    allowPositionals: false;
  }): { values: Record<string, string | boolean | (string | boolean)[] | undefined> };
}
