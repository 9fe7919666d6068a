/** Makes elements. Texts are always text nodes, and styles are set through the CSSOM: the page's policy allows no others. */

type Child = Node | string | null;

/** An element with attributes and children; a `true` attribute is empty, a `false` one absent. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | boolean>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** The page's element of that id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}

/** Sets a text only if it differs: an `aria-live` region would speak again. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Where a box lies on the time axis, both as shares of its width. */
export function place(element: HTMLElement, from: number, to: number): void {
  const share = (value: number): number => Math.min(1, Math.max(0, value));
  element.style.left = `${(share(from) * 100).toFixed(3)}%`;
  element.style.width = `${((share(to) - share(from)) * 100).toFixed(3)}%`;
}
