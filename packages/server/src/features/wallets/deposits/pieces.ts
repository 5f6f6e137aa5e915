import type { Booking } from './booking.ts'

/**
 * Splits bookings into pieces of at most `most`, in the order of the groups, of which each has the bookings of one organisation. Within a group they are in
 * chain order. All sides of one transfer in a group are in one piece, which may exceed `most` for them.
 */
export function* piecesOf(
  groups: Iterable<readonly Booking[]>,
  most: number,
): Generator<readonly Booking[], undefined> {
  let piece: Booking[] = []
  for (const bookings of groups)
    for (const sides of inChainOrder(bookings)) {
      if (piece.length > 0 && piece.length + sides.length > most) {
        yield piece
        piece = []
      }
      piece.push(...sides)
    }
  if (piece.length > 0) yield piece
}

function inChainOrder(bookings: readonly Booking[]): Iterable<readonly Booking[]> {
  const sorted = bookings.toSorted(
    (left, right) => Number(left.blockNumber - right.blockNumber) || left.logIndex - right.logIndex,
  )
  return Map.groupBy(sorted, ({ txHash, logIndex }) => `${txHash} ${logIndex}`).values()
}
