/** Random numbers that are the same in every run and on every host. */

/**
 * A source of numbers from 0 up to, not including, 1, made from a seed: for scripts that fail at random.
 *
 * @param seed - A whole number from 0 to 2^32 − 1.
 */
export function seededRandom(seed: number): () => number {
  // Mulberry32: whole-number arithmetic only, so every engine gives the same.
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
