import { expect, test } from 'vitest'
import { policyChange } from './change.ts'
import { EffectivePolicy, looseningsOf, PolicyDocument } from './decide.ts'

const addressAt = (place: number): string => `0x${place.toString(16).padStart(40, '0')}`
const many = (count: number, tokens: Record<string, object> = { USDC: {} }): EffectivePolicy => {
  const recipients = Array.from({ length: count }, (_, place) => addressAt(place + 1))
  return EffectivePolicy.parse({ operations: { transfer: { recipients }, pay: { recipients: 'any' } }, tokens })
}

test('the audit log has a small policy as it is', () => {
  expect(policyChange(undefined, many(2))).toEqual({ from: null, to: many(2) })
})

test('of a large policy the audit log has its hash, the tokens that changed, and the first of the recipients that did', () => {
  const change = policyChange(many(1_000), many(900, { USDC: { perDay: '1' } }))
  expect(change).toEqual({
    from: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    to: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    operations: {
      transfer: {
        from: 1_000,
        to: 900,
        removed: 100,
        firstRemoved: Array.from({ length: 10 }, (_, place) => addressAt(place + 901)),
      },
    },
    tokens: { from: { USDC: {} }, to: { USDC: { perDay: '1' } } },
  })
  expect(policyChange(many(1_000), many(1_000))).toMatchObject({ operations: {}, from: change.from })
  expect(policyChange(many(1_000), undefined)).toMatchObject({
    to: null,
    operations: { transfer: { from: 1_000, to: null, removed: 1_000 }, pay: { from: 'any', to: null } },
  })
})

test('the record of the largest policy is less than eight kilobytes', () => {
  const recipients = Array.from({ length: 1_000 }, (_, place) => addressAt(place + 1))
  const of = (names: readonly string[]) =>
    EffectivePolicy.parse({
      operations: Object.fromEntries(
        ['transfer', 'pay', 'withdraw', 'legacyWithdraw', 'sweep'].map((name) => [name, { recipients: names }]),
      ),
      tokens: { USDC: {} },
    })
  const others = recipients.map((address) => address.replace('0x0', '0x1'))
  expect(JSON.stringify(policyChange(of(recipients), of(others))).length).toBeLessThan(8_192)
})

test('a stored policy is read without calculating the checksums of its recipients', () => {
  const lower = `0x${'ab'.repeat(20)}`
  const document = { operations: { transfer: { recipients: [lower] } }, tokens: {} }
  expect(EffectivePolicy.parse(document)).toEqual(document)
  expect(PolicyDocument.parse(document).operations.transfer?.recipients).not.toEqual([lower])
})

test('recipients in another order are no loosening, and one more is', () => {
  const [large, reversed] = [many(1_000), many(1_000)]
  const { recipients = [] } = reversed.operations.transfer ?? {}
  if (recipients === 'any') throw new Error('the recipients are listed')
  recipients.reverse()
  expect([looseningsOf(large, reversed), looseningsOf(large, many(1_001))]).toEqual([[], ['/operations/transfer']])
})
