/** What the chosen trouble is, what the upstream is going to do, and the settings of the keel. */
import type { Trouble } from "../scenario/trouble.js";
import { h } from "./dom.js";

export function intro(element: HTMLElement, trouble: Trouble): void {
  const steps = trouble.upstream.map((step) => h("li", {}, step));
  element.replaceChildren(
    h("h2", { id: "trouble-title" }, trouble.title),
    h("p", { class: "about" }, trouble.about),
    h(
      "div",
      { class: "facts" },
      h("div", {}, h("h3", {}, "The upstream answers"), h("ol", {}, ...steps)),
      h("div", {}, h("h3", {}, "The caller’s code"), h("pre", { class: "code" }, h("code", {}, code(trouble)))),
    ),
  );
}

/** What makes the call, with the settings that are not the defaults. */
function code({ api, options, deadlineMs }: Trouble): string {
  const url =
    api === "anthropic" ? "https://api.anthropic.com/v1/messages" : "https://api.openai.com/v1/chat/completions";
  const scoped = deadlineMs === undefined ? "keel.fetch" : `keel.with({ deadlineMs: ${deadlineMs} }).fetch`;
  const members = Object.entries(options ?? {}).map(([name, value]) => `  ${name}: ${literal(value)},\n`);
  const inner = members.length === 0 ? "" : `{\n${members.join("")}}`;
  return `// POST ${url}\nconst keel = createKeel(${inner});\nawait ${scoped}(url, request);`;
}

/** A plain object as one would write it. */
function literal(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, member]) => `${key}: ${literal(member)}`);
  return `{ ${members.join(", ")} }`;
}
