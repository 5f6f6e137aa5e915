import { expect, test } from 'vitest'
import { comparisonOf } from './compare.ts'

/** A lane that gives `next` next and of which nothing is open. */
function atRest(next: bigint) {
  return { nextNonce: next, lowestOpen: next, isFilling: false }
}

test.each([
  ['nothing was lost', atRest(7n), [7n, 7n, 7n], { outcome: 'compared' }],
  ['the chain is not deep enough yet', atRest(7n), [6n, 7n, 7n], { outcome: 'wait' }],
  ['the chain is behind the lane', atRest(7n), [3n, 3n, 3n], { outcome: 'wait' }],
  ['what was lost is in blocks', atRest(7n), [7n, 9n, 9n], { outcome: 'fill', nonces: [], nextNonce: 9n }],
  ['what was lost waits at a node', atRest(7n), [7n, 7n, 9n], { outcome: 'fill', nonces: [7n, 8n], nextNonce: 9n }],
  [
    'some is in blocks and some waits',
    atRest(7n),
    [7n, 8n, 10n],
    { outcome: 'fill', nonces: [8n, 9n], nextNonce: 10n },
  ],
  ['fillings are under way', { nextNonce: 9n, lowestOpen: 8n, isFilling: true }, [8n, 8n, 9n], { outcome: 'wait' }],
  ['its own are under way', { nextNonce: 9n, lowestOpen: 7n, isFilling: false }, [7n, 7n, 9n], { outcome: 'compared' }],
  ['a node reports far too many', atRest(7n), [7n, 7n, 10n ** 9n], { outcome: 'too-many' }],
] as const)(
  'after a restore a lane whose case is that %s is handled so',
  (_, lane, [deep, mined, highest], expected) => {
    expect(comparisonOf(lane, { deep, mined, highest })).toEqual(expected)
  },
)
