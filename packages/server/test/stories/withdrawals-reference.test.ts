import { type DevChain, fundNative, fundToken, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, codeOf, unreachableMain, type World } from '../world.ts'

let base: DevChain
let world: World

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [base], rpcUrls: { ...unreachableMain, 'base-sepolia': [base.rpcUrl] } })
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
})

const accounts = {
  GBP: { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' },
  EUR: { accountName: 'Acme GmbH', currency: 'EUR', iban: 'DE89370400440532013000', swiftBic: 'COBADEFFXXX' },
  USD: { accountName: 'Acme Inc', currency: 'USD', routingNumber: '021000021', accountNumber: '987654321' },
}

/** A wallet that can pay one withdrawal, and a bank account. */
async function aStage(currency: keyof typeof accounts) {
  const { testKey: key } = await world.organisation()
  const masters = '/wallet-infra/master-wallets'
  const { body: wallet } = await world.call(key, 'POST', masters, { chain: 'base', supportedTokens: ['USDC'] })
  const address = wallet.address as Address
  await fundNative(base, address, 10n ** 18n)
  await fundToken(base, 'USDC', address, 100_000_000n)
  const { body: account } = await world.call(key, 'POST', '/wallet-infra/bank-accounts', accounts[currency])
  return {
    key,
    order: { fromWalletId: wallet.id, token: 'USDC', chain: 'base', amount: '100', bankAccountId: account.id },
  }
}

test.each([
  ['GBP', 'Invoice 2026-11-30/7', 'Invoice 2026-11/7'],
  ['GBP', 'Café 7', 'Cafe 7'],
  ['EUR', 'INV 7', 'Invoice 7'],
  ['USD', 'Invoice #7', 'Invoice 7'],
] as const)(
  'a payment in %s cannot have the reference %j, so nothing is stored; %j is accepted',
  async (currency, unfit, fit) => {
    const { key, order } = await aStage(currency)
    const refused = await world.call(key, 'POST', '/wallet-infra/withdraw', { ...order, reference: unfit })
    expect([refused.status, codeOf(refused)]).toEqual([422, 'validation-error'])
    const message = expect.stringContaining(`payment in ${currency}`)
    expect(refused.body.errors).toEqual([{ path: '/reference', message }])
    expect((await world.call(key, 'GET', '/wallet-infra/withdrawals')).list).toEqual([])
    const accepted = await world.call(key, 'POST', '/wallet-infra/withdraw', { ...order, reference: fit })
    expect([accepted.status, accepted.body.reference]).toEqual([201, fit])
  },
)
