import { type DevChain, startChain } from '@purser/devnet'
import { decodeMppJson, encodeTransferWithMemo, formatMppCredential, type MppChallenge, parseTempoChargeRequest } from '@purser/protocol'
import { Transaction } from 'viem/tempo'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aTempoPayer, aTempoWallet, memoFor, offerOf, pathUsd, sourceOf, type TempoPayer } from '../tempo-payer.ts'
import { type Answer, aWorld, type Org, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let payer: TempoPayer
let wallet: { id: string }
const resource = 'https://api.example.com/weather'

beforeAll(async () => {
  chain = await startChain({ network: 'tempo-moderato' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 1_000 } })
  org = await world.organisation()
  wallet = await aTempoWallet(world, org)
  payer = await aTempoPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

async function challenge(): Promise<MppChallenge> {
  return offerOf(await world.call(org.testKey, 'POST', '/payments/challenge', { walletId: wallet.id, resource, price: '0.01' }))
}
function verify(credential: string): Promise<Answer> {
  return world.call(org.testKey, 'POST', '/payments/verify', { protocol: 'mpp', credential, price: '0.01', walletId: wallet.id, resource })
}

test('a transaction with a gapped nonce', async () => {
  const offer = await challenge()
  const asked = parseTempoChargeRequest(decodeMppJson(offer.request) ?? {})
  if (asked === undefined) throw new Error('x')
  const now = Math.floor(Date.now() / 1000)
  const signature = await payer.account.signTransaction(
    {
      type: 'tempo', from: payer.account.address, chainId: asked.chainId,
      calls: [{ to: asked.currency, data: encodeTransferWithMemo(asked.recipient, BigInt(asked.amount), memoFor(offer)) }],
      nonceKey: 0n, nonce: 1000, validBefore: now + 600, gas: 700_000n, maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 0n, feeToken: pathUsd,
    } as never,
    { serializer: Transaction.serialize as never },
  )
  const answer = await verify(formatMppCredential({ challenge: offer, payload: { type: 'transaction', signature }, source: sourceOf(payer.account) }))
  console.log(JSON.stringify(answer))
  expect(answer.status).not.toBe(200)
})
