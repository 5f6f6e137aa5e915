import { type DevChain, fundToken, startChain } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFakeScreening } from '../screening-double.ts'
import { aTempoPayer, nodeCall, offerOf, push } from '../tempo-payer.ts'
import { ShiftedClock } from '../webhooks/clock.ts'
import { type Answer, aWorld, codeOf, type Org, type World } from '../world.ts'

// The main network: its blocks are final when their node calls them finalized.
let chain: DevChain
let world: World
let org: Org
const patient = { timeout: 60_000 }

beforeAll(async () => {
  chain = await startChain({ network: 'tempo' })
  const clock = new ShiftedClock()
  world = await aWorld({ chains: [chain], boot: { clock, screening: createFakeScreening(() => clock.now()) } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  world.call(org.liveKey, method, path, body)

/** Refunds once the payment's block is final and the wallet's deposits are booked. */
async function refund(paymentId: unknown): Promise<void> {
  const response = async () => {
    await nodeCall(chain, 'anvil_mine', ['0x8'])
    const made = await call('POST', `/payments/${paymentId}/refund`, {})
    return [made.status, codeOf(made)]
  }
  await expect.poll(response, patient).toEqual([201, ''])
}

test('payments that payers sent on Tempo, by their bytes or by their hash, are refunded once they are final', async () => {
  const { body } = await call('POST', '/wallet-infra/master-wallets', { chain: 'tempo', supportedTokens: ['pathUSD'] })
  await fundToken(chain, 'pathUSD', body.address as Address, 5_000_000n)
  const payer = await aTempoPayer(chain)
  const terms = { walletId: String(body.id), resource: 'https://api.example.com/weather', price: '0.01' }
  for (const by of ['bytes', 'hash'] as const) {
    const offer = offerOf(await call('POST', '/payments/challenge', terms))
    const credential = by === 'bytes' ? await payer.pull(offer) : push(offer, await payer.broadcast(offer))
    const verified = await call('POST', '/payments/verify', { ...terms, protocol: 'mpp', credential })
    expect([verified.status, codeOf(verified)]).toEqual([200, ''])
    await refund(verified.body.paymentId)
  }
})
