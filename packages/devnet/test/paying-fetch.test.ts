import { createPayingFetch, type PaymentRecord, paymentOf, type Signer } from '@purser/sdk/pay'
import { createClient, http } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { prepareTransactionRequest, signTransaction } from 'viem/actions'
import { tempoModerato } from 'viem/tempo/chains'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { aTempoWallet } from '../../server/test/tempo-payer.ts'
import { aPayer, aWorld, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { fundFees, tokenBalance } from '../src/faucet.ts'
import { logsOf } from './official-ledger.ts'
import { shops } from './paid-shops.ts'

const rawPrice = 10_000n

let base: DevChain
let tempo: DevChain
let world: World
let org: Org
const cleanUps: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  base = await startChain({ network: 'base-sepolia' })
  tempo = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [base, tempo] })
  org = await world.organisation()
})
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await world?.stop()
  await base?.stop()
  await tempo?.stop()
})

/** As docs/paying.md shows it. */
function signerOf(account: PrivateKeyAccount): Signer {
  const client = createClient({ account, chain: tempoModerato, transport: http(tempo.rpcUrl) })
  return {
    address: account.address,
    signTypedData: account.signTypedData,
    async signTempoTransaction({ calls, validBeforeSeconds }) {
      const request = { calls: [...calls], nonceKey: 'expiring', validBefore: validBeforeSeconds } as const
      const prepared = await prepareTransactionRequest(client, request)
      prepared.gas = (prepared.gas ?? 0n) + 5_000n
      return signTransaction(client, prepared)
    },
  }
}

describe.each(Object.entries(shops))('our paying fetch at a route behind our %s middleware', (_name, openShop) => {
  test.each([
    ['x402/base-sepolia', 'x402', 'USDC'],
    ['mpp/base-sepolia', 'mpp', 'USDC'],
    ['mpp/tempo-moderato', 'mpp', 'pathUSD'],
  ] as const)('pays by %s when that is preferred, once, and returns what it paid', async (prefer, protocol, symbol) => {
    const { shop, wallets } = await stage(openShop)
    const chain = symbol === 'USDC' ? base : tempo
    const { account } = await aPayer(base)
    await fundFees(tempo, account.address)
    const records: PaymentRecord[] = []
    const pay = createPayingFetch({
      signer: signerOf(account),
      limits: { perCall: '0.01', perDay: '0.01' },
      prefer: [prefer],
      onPayment: (record) => void records.push(record),
    })
    const response = await pay(`${shop.url}/report`)

    expect([response.status, await response.json()]).toEqual([200, { report: 'all is well' }])
    const to = symbol === 'USDC' ? wallets.base : wallets.tempo
    expect(await tokenBalance(chain, symbol, to.address)).toBe(rawPrice)
    const [log, ...others] = await logsOf(world, org, to.id)
    expect(others).toEqual([])
    expect(log).toMatchObject({ protocol, status: 'settled', amount: '0.01', payer: account.address })
    expect(paymentOf(response)).toMatchObject({ protocol, amountUsd: '0.01', outcome: 'paid' })
    expect(records).toMatchObject([{ protocol, payTo: to.address }])
    expect(shop.served).toEqual([account.address])
    await expect(pay(`${shop.url}/report`)).rejects.toMatchObject({ name: 'LimitExceededError' })
    expect(shop.served).toHaveLength(1)
  })
})

async function stage(openShop: (typeof shops)[keyof typeof shops]) {
  const [onBase, onTempo] = await Promise.all([world.wallet(org), aTempoWallet(world, org)])
  const till = { apiKey: org.testKey, baseUrl: world.base, walletId: onBase.id, otherWalletIds: [onTempo.id] }
  const shop = await openShop(till)
  cleanUps.push(shop.stop)
  return { shop, wallets: { base: onBase, tempo: onTempo } }
}
