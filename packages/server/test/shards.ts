/**
 * Returns the files that one of several machines runs, counted from 1, of files with the longest first. They are dealt forth and back, so that
 * the machine with the longer file of one round gets the shorter one of the next.
 */
export function dealt<File>(files: readonly File[], { index, count }: { index: number; count: number }): File[] {
  return files.filter((_, place) => {
    const [round, turn] = [Math.floor(place / count), place % count]
    return (round % 2 === 0 ? turn : count - 1 - turn) === index - 1
  })
}
