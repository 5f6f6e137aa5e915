import type { PaymentLog, PolicyDocument } from '@purser/sdk'
import { expect, test } from 'vitest'
import { environmentOf, inEnvironment } from '../src/api/scope.ts'
import { mergeFirstPage, withStatuses } from '../src/pages/payments/queries.ts'
import { limitWords, quotasOf, quotaWords } from '../src/pages/usage/quotas.tsx'
import { draftOf, policyOf } from '../src/pages/wallets/policy-draft.ts'
import { policyLines } from '../src/pages/wallets/policy-words.ts'
import { explorerUrl } from '../src/ui/explorer.ts'
import { addDecimals, count, duration, groupDecimal, middleTruncate } from '../src/ui/format.ts'

test('an amount keeps every digit that says something, and gets no digit of its own', () => {
  expect(groupDecimal('1234567.050')).toBe('1,234,567.05')
  expect(groupDecimal('0.000000000000000001')).toBe('0.000000000000000001')
  expect(groupDecimal('1250.5')).toBe('1,250.50')
  expect(groupDecimal('3.000')).toBe('3')
  expect(groupDecimal('not a number')).toBe('not a number')
})

test('sums of amounts are exact where a float would not be', () => {
  expect(addDecimals(['0.1', '0.2'])).toBe('0.3')
  expect(addDecimals(['0.000000000000000001', '9007199254740993'])).toBe('9007199254740993.000000000000000001')
  expect(addDecimals([])).toBe('0')
})

test('an id keeps its prefix and both ends, and a short one stays whole', () => {
  expect(middleTruncate('pay_01h455vb4pex5vsknk084sn02q')).toBe('pay_01h4…n02q')
  expect(middleTruncate('0x036CbD53842c5426634e7929541eC2318f3dCF7e')).toBe('0x036C…CF7e')
  expect(middleTruncate('pay_short')).toBe('pay_short')
})

test('counts and durations are words', () => {
  expect([count(1, 'payment'), count(2_000, 'payment')]).toEqual(['1 payment', '2,000 payments'])
  expect([duration(12), duration(2_400), duration(200_000), duration(7_500_000)]).toEqual([
    '12 ms',
    '2.4 s',
    '3 min 20 s',
    '2 h 5 min',
  ])
})

test('the environment is read from the address alone, and a switch keeps page and filters', () => {
  expect(environmentOf('/dashboard/live/payments')).toBe('live')
  expect(environmentOf('/dashboard/testing')).toBeUndefined()
  expect(inEnvironment('live', { pathname: '/dashboard/test/payments', search: '?range=7d' })).toBe(
    '/dashboard/live/payments?range=7d',
  )
  expect(inEnvironment('test', { pathname: '/dashboard/settings/billing', search: '' })).toBe(
    '/dashboard/test/settings/billing',
  )
  expect(inEnvironment('test', { pathname: '/dashboard', search: '' })).toBe('/dashboard/test')
})

const row = (id: string, change: Partial<PaymentLog> = {}): PaymentLog => ({
  id: `plog_${id}`,
  paymentId: `pay_${id}`,
  route: null,
  method: null,
  amount: '1',
  token: 'USDC',
  chain: 'base',
  protocol: 'x402',
  txHash: null,
  payer: null,
  walletId: null,
  vaultId: null,
  sessionId: null,
  apiKeyId: 'key_1',
  status: 'verified',
  createdAt: '2026-11-23T12:00:00.000Z',
  ...change,
})
const listed = (...ids: string[]) => ({
  pages: [{ items: ids.map((id) => row(id)), cursor: 'next' }],
  pageParams: [undefined],
})

test('new payments precede the known ones, each once, and known ones take the newer state', () => {
  const first = { items: [row('3'), row('2', { status: 'settled' })], cursor: 'other' }
  const merged = mergeFirstPage(listed('2', '1'), first, undefined)
  expect(merged.pages.flatMap(({ items }) => items.map(({ id, status }) => `${id} ${status}`))).toEqual([
    'plog_3 verified',
    'plog_2 settled',
    'plog_1 verified',
  ])
  expect(merged.pages[0]?.cursor).toBe('next')
})

test('a list of one status loses what has another status now, on the first page and after it', () => {
  type Args = Parameters<typeof mergeFirstPage>
  const merged = (first: Args[1], old: Args[0] = listed('4', '3', '2', '1')) =>
    mergeFirstPage(old, first, 'verified').pages.flatMap(({ items }) => items.map(({ id }) => id))
  expect(merged({ items: [row('5'), row('3')], cursor: 'more' })).toEqual(['plog_5', 'plog_3', 'plog_2', 'plog_1'])
  expect(merged({ items: [row('4'), row('3')], cursor: undefined })).toEqual(['plog_4', 'plog_3'])
  const changed = withStatuses(listed('4', '3', '2', '1'), new Map([['pay_1', { status: 'settled' }]]))
  expect(merged({ items: [row('4'), row('3')], cursor: 'more' }, changed)).toEqual(['plog_4', 'plog_3', 'plog_2'])
})

test('where more came than one page holds, the list begins anew and leaves no gap', () => {
  const first = { items: [row('9'), row('8')], cursor: 'to-7' }
  expect(mergeFirstPage(listed('2', '1'), first, undefined).pages).toEqual([first])
})

test('a payment that is settled changes in its place, and no other row does', () => {
  const old = listed('2', '1')
  const changed = withStatuses(old, new Map([['pay_1', { status: 'settled', txHash: '0xab' }]]))
  expect(changed.pages[0]?.items.map(({ status, txHash }) => [status, txHash])).toEqual([
    ['verified', null],
    ['settled', '0xab'],
  ])
  expect(withStatuses(old, new Map([['pay_7', { status: 'settled' }]])).pages[0]).toBe(old.pages[0])
})

test('a quota is shown with the units of the plan, and without a limit there is none', () => {
  const figure = { used: 3, limit: 10_000, percent: 0, unlimited: false }
  const storage = { used: 1.5 * 2 ** 30, limit: 500 * 2 ** 20, percent: 307, unlimited: false }
  const usage = {
    plan: 'pro' as const,
    period: { start: '2026-11-01T00:00:00.000Z', end: '2026-12-01T00:00:00.000Z' },
    payments: figure,
    byoWallets: { used: 3, limit: -1, percent: null, unlimited: true },
    managedWallets: figure,
    activeVaults: figure,
    persistedVaults: figure,
    storageBytes: storage,
    webhooks: figure,
    childAddresses: figure,
  }
  const lines = quotasOf(usage).map((quota) => `${quota.label}: ${quotaWords(quota)}`)
  expect(lines).toContain('Payments this month: 3 of 10,000')
  expect(lines).toContain('Own wallets: 3')
  expect(lines).toContain('Storage: 1.5 GB of 500 MB')
  expect([limitWords('fileBytes', 2 ** 30), limitWords('webhooks', -1)]).toEqual(['1 GB', 'Unlimited'])
  expect(limitWords('vaultTtlSecondsDefault', 86_400)).toBe('24 hours')
  expect(limitWords('vaultTtlSecondsMax', 7 * 86_400)).toBe('7 days')
})

test('a policy is read back in sentences that leave out nothing it allows', () => {
  const words = (policy: PolicyDocument | null) => policyLines(policy).map(({ kind, text }) => `${kind}: ${text}`)
  expect(words(null)).toEqual(['allows: No limits: any amount can go to any address or bank account.'])
  expect(words({ operations: {}, tokens: { USDC: {} } })).toEqual([
    'refuses: No money can leave this wallet or its child addresses.',
  ])
  const supplier = '0x9b1deb4d3b7d4bad9bdd2b0d7b3dcb6dabcdef01'
  const policy: PolicyDocument = {
    operations: { transfer: { recipients: [supplier] }, sweep: { recipients: 'any' } },
    tokens: { USDC: { perTransaction: '50', perDay: '1500.5', approvalAbove: '20' }, ETH: { approvalAbove: '0' } },
  }
  expect(words(policy)).toEqual([
    'allows: Transfers may go only to 0x9b1d…ef01.',
    'allows: Sweeps to other addresses may go to any address.',
    'allows: USDC: at most 50 per transaction and 1,500.50 per day.',
    'person: Amounts above 20 USDC need an approval.',
    'allows: ETH: any amount.',
    'person: Every amount of ETH needs an approval.',
    'refuses: Payments to paid APIs are refused.',
    'refuses: Withdrawals are refused.',
    'refuses: No other token than USDC and ETH can be sent.',
  ])
  const paying: PolicyDocument = { operations: { pay: { recipients: [supplier] } }, tokens: { USDC: {} } }
  expect(words(paying)[0]).toBe('allows: Payments to paid APIs may go only to 0x9b1d…ef01.')
  const anySeller = { ...draftOf(paying, []), pay: { mode: 'any' as const, lines: '' } }
  expect(policyOf(anySeller, paying).operations).toEqual({ pay: { recipients: 'any' } })
  // A form that is saved unchanged changes nothing, nor what the form does not show.
  expect(policyOf(draftOf(policy, ['USDC', 'EURC']), policy)).toEqual(policy)
})

test('a transaction leads to the explorer that the service names for its chain, and to none for a chain of its own', () => {
  const chains = [
    { name: 'base', explorerUrl: 'https://sepolia.basescan.org' },
    { name: 'optimism', explorerUrl: 'https://sepolia-optimism.etherscan.io' },
    { name: 'ethereum', explorerUrl: null },
  ] as const
  const at = (network: string) => explorerUrl(chains, { network, kind: 'tx', value: '0xab' })
  expect([at('base'), at('base-sepolia')]).toEqual(Array(2).fill('https://sepolia.basescan.org/tx/0xab'))
  expect(at('optimism-sepolia')).toBe('https://sepolia-optimism.etherscan.io/tx/0xab')
  expect([at('ethereum'), at('eth-sepolia'), at('a-network-without-one')]).toEqual(Array(3).fill(undefined))
})
