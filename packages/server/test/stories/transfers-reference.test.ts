import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../world.ts'

let base: DevChain
let world: World
let org: Org
let fromWalletId: string

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base], config: { transferWaitMs: 20_000 } })
  org = await world.organisation()
  const { body } = await call('POST', '/wallet-infra/master-wallets', { chain: 'base', supportedTokens: ['USDC'] })
  fromWalletId = String(body.id)
  await fundNative(base, body.address as Address, 10n ** 18n)
  await fundToken(base, 'USDC', body.address as Address, 200_000_000n)
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

const call = (method: string, path: string, body?: unknown) => world.call(org.testKey, method, path, body)
const toAddress = '0x036cbd53842c5426634e7929541ec2318f3dcf7d'
const moved = { fromToken: 'USDC', toChain: 'base', toToken: 'USDC', amount: '1', toAddress }
const metadata = { order: 7, lines: [{ sku: 'é', price: 1.5 }], none: null }

test('reference and metadata of a transfer are returned where it is created, read and listed', async () => {
  const reference = 'r'.repeat(80)
  const made = await call('POST', '/wallet-infra/transfer', { fromWalletId, ...moved, reference, metadata })
  expect([made.status, made.body]).toEqual([201, expect.objectContaining({ reference, metadata })])
  const read = await call('GET', `/wallet-infra/transfers/${made.body.id}`)
  expect(read.body).toMatchObject({ id: made.body.id, reference, metadata })
  expect((await call('GET', '/wallet-infra/transfers')).list).toContainEqual(
    expect.objectContaining({ id: made.body.id, reference, metadata }),
  )
})

test('a transfer that was just made is found by a member of its metadata', async () => {
  const made = await call('POST', '/wallet-infra/transfer', { fromWalletId, ...moved, metadata: { order: 'new' } })
  const listed = (await call('GET', '/wallet-infra/transfers?metadata.order=new')).list
  expect(listed.map(({ id }) => id)).toEqual([made.body.id])
})

test('a transfer without them returns null and an empty object', async () => {
  const made = await call('POST', '/wallet-infra/transfer', { fromWalletId, ...moved })
  expect(made.body).toMatchObject({ reference: null, metadata: {} })
})

test.each([
  ['/reference', { reference: 'r'.repeat(81) }],
  ['/reference', { reference: '' }],
  ['/metadata', { metadata: { text: 'x'.repeat(16_385) } }],
  ['/metadata', { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`key${at}`, at])) }],
])('%s beyond its limits is a validation error', async (path, fields) => {
  const refused = await call('POST', '/wallet-infra/transfer', { fromWalletId, ...moved, ...fields })
  expect([refused.status, JSON.stringify(refused.body.errors)]).toEqual([422, expect.stringContaining(path)])
})

test('metadata of a withdrawal is returned where it is created, read and listed', async () => {
  const gbp = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const { body: account } = await call('POST', '/wallet-infra/bank-accounts', gbp)
  const paid = { token: 'USDC', chain: 'base', amount: '50', bankAccountId: account.id, reference: 'Invoice 7' }
  const made = await call('POST', '/wallet-infra/withdraw', { fromWalletId, ...paid, metadata })
  expect([made.status, made.body]).toEqual([201, expect.objectContaining({ reference: 'Invoice 7', metadata })])
  expect((await call('GET', `/wallet-infra/withdrawals/${made.body.id}`)).body).toMatchObject({ metadata })
  expect((await call('GET', '/wallet-infra/withdrawals')).list).toContainEqual(
    expect.objectContaining({ id: made.body.id, metadata }),
  )
  const found = (await call('GET', '/wallet-infra/withdrawals?metadata.order=7')).list
  expect(found.map(({ id }) => id)).toEqual([made.body.id])
  // The transfer that takes the tokens to the partner is part of the withdrawal.
  const transfers = (await call('GET', '/wallet-infra/transfers?metadata.order=7')).list
  expect(transfers.filter(({ amount }) => amount === '50')).toEqual([])
})
