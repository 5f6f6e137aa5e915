import { type DevChain, sendFromDevAccount, startChain } from '@purser/devnet'
import { createTestClient, encodeFunctionData, http, parseAbi, toHex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Answer, aPayer, aWorld, type Org, type Payer, type World } from '../world.ts'

let chain: DevChain
let world: World
let org: Org
let wallet: { id: string }

/** A network on which a payment stays unsettled until four more blocks are on its own, and none is mined here. */
beforeAll(async () => {
  chain = await startChain({ network: 'base' })
  world = await aWorld({ chains: [chain], config: { settleWaitMs: 1_500 } })
  org = await world.organisation()
  wallet = await world.wallet(org, { chain: 'base', key: org.liveKey })
})
afterEach(async () => {
  await anvil().setAutomine(true)
  await anvil().mine({ blocks: 5 })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

function anvil() {
  return createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
}

async function verified(payer: Payer, nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))): Promise<Answer> {
  const requested = { walletId: wallet.id, resource: 'https://api.example.com/weather', price: '0.01' }
  const challenge = await world.call(org.liveKey, 'POST', '/payments/challenge', requested)
  const credential = await payer.credential(challenge, { sign: { nonce } })
  const response = await world.call(org.liveKey, 'POST', '/payments/verify', {
    protocol: 'x402',
    credential,
    ...requested,
  })
  expect(response.status).toBe(200)
  return response
}

async function settled({ body: { paymentId, settlementToken } }: Answer): Promise<unknown[]> {
  const response = await world.call(org.liveKey, 'POST', '/payments/settle', { paymentId, settlementToken })
  return [response.status, response.body.txHash]
}

async function hashOf({ body: { paymentId } }: Answer): Promise<unknown> {
  return (await world.call(org.liveKey, 'GET', `/payments/${String(paymentId)}`)).body.txHash
}

const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/)

test('a pending settlement has a hash once a block shows the money moving, and none before', async () => {
  const payment = await verified(await aPayer(chain))
  await anvil().setAutomine(false)
  expect(await settled(payment)).toEqual([202, null])
  await expect.poll(() => hashOf(payment)).toEqual(hash)
  await anvil().mine({ blocks: 1 })
  await expect.poll(() => settled(payment)).toEqual([202, hash])
})

test('a payment that its payer canceled is not reported as pending with a hash, though a block has its transaction', async () => {
  const payer = await aPayer(chain)
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)))
  const payment = await verified(payer, nonce)
  await cancel(payer, nonce)
  expect(await settled(payment)).toEqual([202, null])
  await expect.poll(() => hashOf(payment)).toBeNull()
  await anvil().mine({ blocks: 5 })
  await expect.poll(async () => (await settled(payment))[0]).toBe(409)
})

/** The payer signs, and anybody may send it. */
async function cancel({ account }: Payer, nonce: `0x${string}`): Promise<void> {
  const usdc = chain.tokens.USDC ?? '0x'
  const signature = await account.signTypedData({
    domain: { name: 'USD Coin', version: '2', chainId: chain.chainId, verifyingContract: usdc },
    types: {
      CancelAuthorization: [
        { name: 'authorizer', type: 'address' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'CancelAuthorization',
    message: { authorizer: account.address, nonce },
  })
  const abi = parseAbi(['function cancelAuthorization(address,bytes32,bytes)'])
  const args = [account.address, nonce, signature] as const
  await sendFromDevAccount(chain, usdc, encodeFunctionData({ abi, functionName: 'cancelAuthorization', args }))
}
