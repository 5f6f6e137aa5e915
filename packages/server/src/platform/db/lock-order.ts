/**
 * Groups in the order in which what they are named after is locked, everywhere, so that none wait crosswise: by code points. A database may
 * sort text in another order; in SQL this one is `collate "C"`.
 */
export function inLockOrder<T>(groups: ReadonlyMap<string, T>): [string, T][] {
  return [...groups].sort(([left], [right]) => (left < right ? -1 : Number(left > right)))
}
