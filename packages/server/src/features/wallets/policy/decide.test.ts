import { formatAmount } from '@purser/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  approvalLimitOf,
  decide,
  denialSentence,
  looseningsOf,
  type Movement,
  PolicyDocument,
  type PolicyUsage,
  policyOperations,
  windowStartsAt,
} from './decide.ts'

const [shop, other] = ['0x036CbD53842c5426634e7929541eC2318f3dCF7e', '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0']
const usdc = { symbol: 'USDC', decimals: 6 }
const nothing: PolicyUsage = { perHour: 0n, perDay: 0n, perMonth: 0n }
const movement: Movement = { operation: 'transfer', token: usdc, rawAmount: 10_000_000n, recipient: shop }
const policy = PolicyDocument.parse({
  operations: { transfer: { recipients: [shop] } },
  tokens: { USDC: { perTransaction: '10', perHour: '20', perDay: '30', perMonth: '40' } },
})
const atto = (dollars: bigint) => dollars * 10n ** 18n
const ruleFor = (changes: Partial<Movement>, usage: Partial<PolicyUsage> = {}) => {
  const verdict = decide(policy, { ...movement, ...changes }, { ...nothing, ...usage })
  return verdict.allowed ? undefined : verdict.rule
}

test('without a policy there is no limit, and an empty policy permits nothing', () => {
  const huge = { ...movement, rawAmount: 10n ** 30n }
  expect(decide(undefined, huge, nothing)).toEqual({ allowed: true })
  const empty = PolicyDocument.parse({ operations: {}, tokens: {} })
  for (const operation of policyOperations)
    expect(decide(empty, { ...movement, operation }, nothing)).toEqual({ allowed: false, rule: 'operation' })
})

test('an operation or recipient that is not named is refused, and the rule is named', () => {
  expect(ruleFor({})).toBeUndefined()
  for (const operation of ['withdraw', 'legacyWithdraw', 'sweep'] as const)
    expect(ruleFor({ operation })).toBe('operation')
  expect(ruleFor({ recipient: other })).toBe('recipient')
  expect(ruleFor({ token: { symbol: 'USDT', decimals: 6 } })).toBe('token')
  for (const symbol of ['constructor', 'toString', '__proto__'])
    expect(ruleFor({ token: { symbol, decimals: 6 } })).toBe('token')
})

test('a denial says in a sentence what refused', () => {
  const denial = { operation: 'pay', recipient: '0xA', token: 'USDC', amount: '0.6' } as const
  const sentences = [
    denialSentence({ ...denial, rule: 'operation' }),
    denialSentence({ ...denial, rule: 'recipient' }),
    denialSentence({ ...denial, rule: 'token' }),
    denialSentence({ ...denial, rule: 'perTransaction', cap: '0.50' }),
    denialSentence({ ...denial, rule: 'perDay', cap: '2', used: '1.5' }),
  ]
  const policy = "The wallet's spend policy"
  expect(sentences).toEqual([
    `${policy} does not allow the operation "pay". Nothing was moved.`,
    `${policy} does not name 0xA as a recipient of "pay". Nothing was moved.`,
    `${policy} does not name the token USDC. Nothing was moved.`,
    `${policy} allows at most 0.50 USDC in one movement, and this one is 0.6 USDC. Nothing was moved.`,
    `${policy} allows at most 2 USDC in a day: 1.5 is used, and this needs 0.6. Nothing was moved.`,
  ])
})

test('a cap can be reached to the last unit and not exceeded by one', () => {
  expect(ruleFor({ rawAmount: 10_000_001n })).toBe('perTransaction')
  expect(ruleFor({}, { perHour: atto(10n) })).toBeUndefined()
  expect(ruleFor({}, { perHour: atto(10n) + 1n })).toBe('perHour')
  expect(ruleFor({}, { perDay: atto(20n) })).toBeUndefined()
  expect(ruleFor({}, { perDay: atto(20n) + 1n })).toBe('perDay')
  expect(ruleFor({}, { perMonth: atto(30n) + 1n })).toBe('perMonth')
})

test('a cap applies to the token whatever its decimals on a chain', () => {
  expect(ruleFor({ token: { symbol: 'USDC', decimals: 18 }, rawAmount: atto(10n) })).toBeUndefined()
  expect(ruleFor({ token: { symbol: 'USDC', decimals: 18 }, rawAmount: atto(10n) + 1n })).toBe('perTransaction')
})

test('a cap of zero permits nothing, and a missing cap is unlimited', () => {
  const with_ = (caps: object) => PolicyDocument.parse({ ...policy, tokens: { USDC: caps } })
  expect(decide(with_({ perDay: '0' }), movement, nothing)).toEqual({ allowed: false, rule: 'perDay' })
  expect(decide(with_({}), { ...movement, rawAmount: 10n ** 40n }, nothing)).toEqual({ allowed: true })
})

test.each([
  { operations: {}, tokens: { USDC: { perDay: '-1' } } },
  { operations: {}, tokens: { USDC: { perDay: '1e3' } } },
  { operations: {}, tokens: { USDC: { perWeek: '1' } } },
  { operations: { mint: { recipients: 'any' } }, tokens: {} },
  { operations: { transfer: { recipients: ['0x036Cbd53842c5426634e7929541eC2318f3dCF7e'] } }, tokens: {} },
  { operations: { transfer: { recipients: ['everybody'] } }, tokens: {} },
  { operations: { transfer: {} }, tokens: {} },
  { operations: {}, tokens: { 'a\u0000b': {} } },
  { operations: {} },
])('%j is not a valid policy', (document) => {
  expect(PolicyDocument.safeParse(document).success).toBe(false)
})

test('a token with the name of a built-in JavaScript property is permitted by no policy that does not name it', () => {
  const named = PolicyDocument.parse({ ...policy, tokens: JSON.parse('{"__proto__":{}}') })
  expect(Object.keys(named.tokens)).toEqual([])
  expect(decide(named, movement, nothing)).toEqual({ allowed: false, rule: 'token' })
})

test('an address in any letter case is the same recipient', () => {
  const lower = PolicyDocument.parse({ ...policy, operations: { transfer: { recipients: [shop.toLowerCase()] } } })
  expect(decide(lower, movement, nothing)).toEqual({ allowed: true })
})

const cap = fc.option(fc.integer({ min: 0, max: 5 }).map(String), { nil: undefined })
const caps = fc.record({ perTransaction: cap, perHour: cap, perDay: cap, perMonth: cap })
const rule = fc.record({
  recipients: fc.oneof(fc.constant('any' as const), fc.subarray([shop, other] as string[])),
})
const policies = fc
  .record({
    operations: fc.dictionary(fc.constantFrom(...policyOperations), rule),
    tokens: fc.dictionary(fc.constantFrom('USDC', 'USDT'), caps),
  })
  .map((document) => PolicyDocument.parse(document))
const movements = fc.record({
  operation: fc.constantFrom(...policyOperations),
  token: fc.constantFrom(usdc, { symbol: 'USDT', decimals: 18 }),
  rawAmount: fc.bigInt(0n, 6_000_000n),
  recipient: fc.constantFrom(shop, other),
})
const amounts = fc.bigInt(0n, atto(6n))
const usages = fc.record({ perHour: amounts, perDay: amounts, perMonth: amounts })

test('a policy that is not looser permits nothing that was refused before', () => {
  fc.assert(
    fc.property(policies, policies, movements, usages, (before, after, requested, usage) => {
      if (looseningsOf(before, after).length > 0) return
      if (decide(after, requested, usage).allowed) expect(decide(before, requested, usage)).toEqual({ allowed: true })
    }),
    { numRuns: 5_000 },
  )
})

test('a policy is not looser than itself; the first policy is not a loosening; removing it is', () => {
  fc.assert(
    fc.property(policies, (one) => {
      expect([looseningsOf(one, one), looseningsOf(undefined, one), looseningsOf(one, undefined)]).toEqual([
        [],
        [],
        [''],
      ])
    }),
  )
})

test('no sequence of movements ever exceeds a window’s cap', () => {
  fc.assert(
    fc.property(caps, fc.array(fc.bigInt(0n, 3_000_000n), { maxLength: 12 }), (limits, wanted) => {
      const own = PolicyDocument.parse({ operations: { transfer: { recipients: 'any' } }, tokens: { USDC: limits } })
      let spent = 0n
      for (const rawAmount of wanted) {
        const usage = { perHour: spent, perDay: spent, perMonth: spent }
        if (decide(own, { ...movement, rawAmount }, usage).allowed) spent += rawAmount * 10n ** 12n
      }
      for (const limit of [limits.perHour, limits.perDay, limits.perMonth])
        if (limit !== undefined) expect(spent, formatAmount(spent, 18)).toBeLessThanOrEqual(atto(BigInt(limit)))
    }),
  )
})

test('a larger amount, or a larger previous total, never turns a refusal into a permission', () => {
  fc.assert(
    fc.property(policies, movements, usages, amounts, (one, requested, usage, more) => {
      const verdict = decide(one, requested, usage)
      const spent = { perHour: usage.perHour + more, perDay: usage.perDay + more, perMonth: usage.perMonth + more }
      if (!verdict.allowed) expect(decide(one, requested, spent).allowed).toBe(false)
      const larger = { ...requested, rawAmount: requested.rawAmount + more }
      if (!verdict.allowed) expect(decide(one, larger, usage).allowed).toBe(false)
    }),
    { numRuns: 2_000 },
  )
})

test('windows are rolling: an hour, a day and thirty days back from now', () => {
  const now = Date.parse('2026-03-31T12:00:00Z')
  expect(Object.values(windowStartsAt(now)).map((ms) => new Date(ms).toISOString())).toEqual([
    '2026-03-31T11:00:00.000Z',
    '2026-03-30T12:00:00.000Z',
    '2026-03-01T12:00:00.000Z',
  ])
})

test('only more than approvalAbove needs an approval, whatever decimals the token has', () => {
  const withLimit = PolicyDocument.parse({ operations: {}, tokens: { USDC: { approvalAbove: '10' }, DAI: {} } })
  const limitFor = (rawAmount: bigint, token = usdc) => approvalLimitOf(withLimit, { token, rawAmount })
  expect([limitFor(10_000_000n), limitFor(10_000_001n)]).toEqual([undefined, '10'])
  expect(limitFor(10n ** 19n + 1n, { symbol: 'USDC', decimals: 18 })).toBe('10')
  expect(limitFor(10n ** 30n, { symbol: 'DAI', decimals: 18 })).toBeUndefined()
})

test('a higher approvalAbove, or none where there was one, is looser; a lower or a first one is not', () => {
  const limited = (approvalAbove?: string) =>
    PolicyDocument.parse({ operations: {}, tokens: { USDC: approvalAbove === undefined ? {} : { approvalAbove } } })
  expect(looseningsOf(limited('10'), limited('11'))).toEqual(['/tokens/USDC/approvalAbove'])
  expect(looseningsOf(limited('10'), limited())).toEqual(['/tokens/USDC/approvalAbove'])
  expect(looseningsOf(limited('10'), limited('9'))).toEqual([])
  expect(looseningsOf(limited(), limited('9'))).toEqual([])
})
