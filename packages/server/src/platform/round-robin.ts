/** Returns the items of lists in turns: the first of each list, in the order of the lists, then the second of each, and so on. */
export function roundRobin<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = lists.reduce((most, { length }) => Math.max(most, length), 0)
  return Array.from({ length: longest }, (_, index) => lists.flatMap((list) => list.slice(index, index + 1))).flat()
}
