import { parseAmount } from '@purser/protocol'
import type { PolicyDocument as SentPolicy } from '@purser/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { approvalLimitOf, decide, PolicyDocument } from '../../server/src/features/wallets/policy/decide.ts'
import { policyVerdict } from '../src/pages/wallets/policy-verdict.ts'

const [shop, other] = ['0x036CbD53842c5426634e7929541eC2318f3dCF7e', '0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0']
const cap = fc.option(fc.constantFrom('0', '5', '5.5', '10'), { nil: undefined })
const caps = fc
  .record({ perTransaction: cap, perHour: cap, perDay: cap, perMonth: cap, approvalAbove: cap })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)))
const recipients = fc.oneof(fc.constant('any' as const), fc.subarray([shop, other] as string[]))
const operation = fc.constantFrom('transfer' as const, 'pay' as const, 'withdraw' as const)
const policies = fc
  .record({
    operations: fc.dictionary(operation, fc.record({ recipients })),
    tokens: fc.dictionary(fc.constantFrom('USDC', 'USDT'), caps),
  })
  .map((document) => PolicyDocument.parse(document))
const movements = fc.record({
  operation,
  token: fc.constantFrom('USDC', 'USDT', 'constructor'),
  amount: fc.constantFrom('0.000001', '5', '5.000001', '5.5', '9.999999', '10', '11'),
  recipient: fc.constantFrom(shop, shop.toLowerCase(), other),
})

/** The policy as the service sends it. */
const sent = (policy: PolicyDocument) => JSON.parse(JSON.stringify(policy)) as SentPolicy

test('the tester of a policy answers as the service decides where no money has left', () => {
  fc.assert(
    fc.property(fc.option(policies), movements, (policy, tried) => {
      const rawAmount = parseAmount(tried.amount, 6)
      if (typeof rawAmount !== 'bigint') throw new Error('the amount of a case cannot be read')
      const movement = {
        operation: tried.operation,
        token: { symbol: tried.token, decimals: 6 },
        rawAmount,
        recipient: tried.recipient === other ? other : shop,
      }
      const nothing = { perHour: 0n, perDay: 0n, perMonth: 0n }
      const isAllowed = decide(policy ?? undefined, movement, nothing).allowed
      const waits = policy !== null && approvalLimitOf(policy, movement) !== undefined
      expect(policyVerdict(policy && sent(policy), tried).kind).toBe(
        !isAllowed ? 'refuses' : waits ? 'person' : 'allows',
      )
    }),
    { numRuns: 3_000 },
  )
})

test('an answer of the tester names the rule and what it leaves', () => {
  const policy = PolicyDocument.parse({
    operations: { transfer: { recipients: [shop] } },
    tokens: { USDC: { perTransaction: '40', perDay: '50', approvalAbove: '20' } },
  })
  const shown = sent(policy)
  const tried = { operation: 'transfer', token: 'USDC', amount: '30', recipient: shop } as const
  const answers = [
    policyVerdict(shown, tried),
    policyVerdict(shown, { ...tried, amount: '12.5' }),
    policyVerdict(shown, { ...tried, amount: '40.000001' }),
    policyVerdict(shown, { ...tried, recipient: other }),
    policyVerdict(shown, { ...tried, operation: 'pay' }),
    policyVerdict(shown, { ...tried, token: 'EURC' }),
    policyVerdict(null, tried),
  ]
  expect(answers.map(({ text }) => text)).toEqual([
    'It waits for an approval: it is above 20 USDC. It leaves 20 USDC per day.',
    'Yes: no rule refuses it. It leaves 37.50 USDC per day.',
    'No: at most 40 USDC may leave per transaction.',
    'No: 0x5520…0Ea0 is not an allowed recipient of transfers.',
    'No: the policy does not allow payments to paid APIs.',
    'No: EURC may not leave this wallet.',
    'Yes: there is no policy.',
  ])
})
