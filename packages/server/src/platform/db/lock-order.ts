/**
 * Groups, sorted by the order in which their names are locked everywhere, so that none deadlock: by code points. A database may sort text
 * differently; in SQL this order is `collate "C"`.
 */
export function inLockOrder<T>(groups: ReadonlyMap<string, T>): [string, T][] {
  return [...groups].sort(([left], [right]) => (left < right ? -1 : Number(left > right)))
}
