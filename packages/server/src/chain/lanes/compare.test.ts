import { expect, test } from 'vitest'
import { comparisonOf } from './compare.ts'

/** A lane whose next nonce is `next` and that has no open transactions. */
function idleLane(next: bigint) {
  return { nextNonce: next, lowestOpen: next, isFilling: false }
}

test.each([
  ['nothing was lost', idleLane(7n), [7n, 7n, 7n], { outcome: 'compared' }],
  ['the chain is not deep enough yet', idleLane(7n), [6n, 7n, 7n], { outcome: 'wait' }],
  ['the chain is behind the lane', idleLane(7n), [3n, 3n, 3n], { outcome: 'wait' }],
  ['the lost transactions are mined', idleLane(7n), [7n, 9n, 9n], { outcome: 'fill', nonces: [], nextNonce: 9n }],
  [
    'the lost transactions are pending at a node',
    idleLane(7n),
    [7n, 7n, 9n],
    { outcome: 'fill', nonces: [7n, 8n], nextNonce: 9n },
  ],
  [
    'some lost transactions are mined and some are pending',
    idleLane(7n),
    [7n, 8n, 10n],
    { outcome: 'fill', nonces: [8n, 9n], nextNonce: 10n },
  ],
  ['fill transactions are open', { nextNonce: 9n, lowestOpen: 8n, isFilling: true }, [8n, 8n, 9n], { outcome: 'wait' }],
  [
    'its own transactions are open',
    { nextNonce: 9n, lowestOpen: 7n, isFilling: false },
    [7n, 7n, 9n],
    { outcome: 'compared' },
  ],
  ['a node reports far too many', idleLane(7n), [7n, 7n, 10n ** 9n], { outcome: 'too-many' }],
] as const)(
  'after a restore, when %s, a lane gets the right comparison',
  (_, lane, [deep, mined, highest], expected) => {
    expect(comparisonOf(lane, { deep, mined, highest })).toEqual(expected)
  },
)
