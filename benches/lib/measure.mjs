// Medians of interleaved rounds: every contender runs once a round, so that a busy machine slows all of them alike.
// Plain JavaScript without imports: it runs in every host.

export function median(/** @type {number[]} */ numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** Milliseconds that have passed. */
const wall = () => performance.now();

/**
 * Microseconds a call of each contender: the median over rounds, in an order that is turned by one each round.
 *
 * @param {Record<string, (n: number) => Promise<unknown>>} contenders Each makes `n` calls in a row.
 * @param {{ rounds?: number, calls?: number, warmUp?: number, clock?: () => number }} [how] `clock` in milliseconds.
 * @returns {Promise<Record<string, number>>}
 */
export async function interleaved(contenders, { rounds = 15, calls = 1_000, warmUp = 3_000, clock = wall } = {}) {
  const names = Object.keys(contenders);
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(names.map((name) => [name, []]));
  for (const name of names) await contenders[name]?.(warmUp);
  for (let round = 0; round < rounds; round += 1) {
    for (let at = 0; at < names.length; at += 1) {
      const name = names[(at + round) % names.length] ?? "";
      const start = clock();
      await contenders[name]?.(calls);
      times[name]?.push(((clock() - start) * 1_000) / calls);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times[name] ?? [])]));
}

/** Milliseconds of processor time of this Node process: what else runs on the machine disturbs it less than a wall clock. */
export function cpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
