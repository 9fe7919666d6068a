/** Takes what nobody has a use for: the failure of what was given up, mostly. */
export function ignore(): void {}
