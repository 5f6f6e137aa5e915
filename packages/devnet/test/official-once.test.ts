import {
  decodePaymentRequiredHeader,
  decodePaymentSignatureHeader,
  encodePaymentSignatureHeader,
} from '@x402/core/http'
import { Credential } from 'mppx'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { facilitatorOf, withRequirements } from '../../server/test/facilitated.ts'
import { aPayer, aWorld, countByStatus, type Org, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import { type FetchingOptions, fetchAgent, fetchV1Agent, mppxEvmAgent } from './official-agents.ts'
import { logsOf } from './official-ledger.ts'
import { expressShop, fastifyShop, type PaidShop } from './paid-shops.ts'

const rawPrice = 10_000n
const copies = 20

let chain: DevChain
let world: World
let org: Org
let otherBase: string

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  otherBase = (await world.another()).base
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const mppxAgent = (options: FetchingOptions) => {
  const authorization = { name: 'USDC', version: '2' }
  return mppxEvmAgent(options, { chainId: chain.chainId, token: chain.tokens.USDC ?? '0x', authorization })
}
const agents = [
  ['@x402/fetch (v2)', fetchAgent],
  ['x402-fetch (v1)', fetchV1Agent],
  ['mppx (evm/charge)', mppxAgent],
] as const

test.each(agents)(
  'one credential of %s sent to two servers of a shop at once, each with its own Purser process, buys once',
  async (_name, agentOf) => {
    await withTwoShops(async ({ shops, served, wallet }) => {
      const { account } = await aPayer(chain)
      const { sent } = await agentOf({ account, dry: true }).call(`${shops[0].url}/report`)
      expect(Object.values(sent)).toHaveLength(1)
      expect(await logsOf(world, org, wallet.id)).toEqual([])
      const answers = await Promise.all(
        Array.from({ length: copies }, (_, index) => fetch(`${shops[index % 2]?.url}/report`, { headers: sent })),
      )

      expect(countByStatus(answers)).toEqual({ 200: 1, 409: copies - 1 })
      expect(served()).toEqual([account.address])
      expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
      expect(await logsOf(world, org, wallet.id)).toMatchObject([{ status: 'settled', payer: account.address }])
    })
  },
)

test('one signature sent as MPP, as x402 version 2 and as version 1 to two servers at once is one sale', async () => {
  await withTwoShops(async ({ shops, served, wallet }) => {
    const { account } = await aPayer(chain)
    const url = `${shops[0].url}/report`
    const { sent: asMpp } = await mppxAgent({ account, dry: true }).call(url)
    const shown = [asMpp, ...(await asX402(url, asMpp.authorization ?? ''))]
    const answers = await Promise.all(
      Array.from({ length: 6 * shown.length }, (_, index) =>
        fetch(`${shops[index % 2]?.url}/report`, { headers: shown[index % shown.length] ?? {} }),
      ),
    )

    expect(countByStatus(answers)).toEqual({ 200: 1, 409: 6 * shown.length - 1 })
    expect(served()).toEqual([account.address])
    expect(await tokenBalance(chain, 'USDC', wallet.address)).toBe(rawPrice)
    expect(await logsOf(world, org, wallet.id)).toHaveLength(1)
  })
})

test.each([['mpp'], ['x402']])('a signature that paid by %s is used up for the other protocol too', async (first) => {
  await withTwoShops(async ({ shops, served, wallet }) => {
    const { account } = await aPayer(chain)
    const url = `${shops[0].url}/report`
    const { sent: asMpp } = await mppxAgent({ account, dry: true }).call(url)
    const all = [asMpp, ...(await asX402(url, asMpp.authorization ?? ''))]
    const inTurn = first === 'mpp' ? all : all.reverse()
    const statuses: number[] = []
    for (const headers of inTurn) statuses.push((await fetch(url, { headers })).status)

    expect(statuses).toEqual([200, 409, 409])
    expect(served()).toEqual([account.address])
    expect(await logsOf(world, org, wallet.id)).toMatchObject([{ protocol: first }])
  })
})

interface Stage {
  readonly shops: readonly [PaidShop, PaidShop]
  readonly served: () => readonly (string | null)[]
  readonly wallet: { readonly id: string; readonly address: `0x${string}` }
}

/** Two servers of one shop, at one public address, that use two processes of one Purser. */
async function withTwoShops(run: (stage: Stage) => Promise<void>): Promise<void> {
  const wallet = await world.wallet(org)
  const till = { apiKey: org.testKey, walletId: wallet.id, publicUrl: 'https://shop.example' }
  const one = await expressShop({ ...till, baseUrl: world.base })
  const two = await fastifyShop({ ...till, baseUrl: otherBase })
  try {
    await run({ shops: [one, two], served: () => [...one.served, ...two.served], wallet })
    expect([...one.faults, ...two.faults]).toEqual([])
  } finally {
    await one.stop()
    await two.stop()
  }
}

/** The authorization of an MPP credential, as the payment header of each version of x402. */
async function asX402(url: string, credential: string): Promise<Record<string, string>[]> {
  const { payload } = Credential.deserialize<Readonly<Record<string, string>>>(credential)
  const { type: _, signature, ...authorization } = payload
  const requested = await fetch(url)
  const { resource, accepts } = decodePaymentRequiredHeader(requested.headers.get('payment-required') ?? '')
  const [accepted] = accepts
  if (accepted === undefined) throw new Error('nothing is offered by x402')
  const signed = { signature, authorization }
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: signed }
  return [
    { 'payment-signature': encodePaymentSignatureHeader({ x402Version: 2, resource, accepted, payload: signed }) },
    { 'x-payment': Buffer.from(JSON.stringify(v1)).toString('base64') },
  ]
}

test('one signature shown at once to shops and facilitators of two organisations that share an address is one sale', async () => {
  const wallet = await world.wallet(org)
  const rival = await world.organisation()
  const theirs = { address: wallet.address, chain: 'base-sepolia', supportedTokens: ['USDC'] }
  const { body: shared } = await world.call(rival.testKey, 'POST', '/wallet-infra/byo-wallets', theirs)
  const [one, two] = [
    await expressShop({ apiKey: org.testKey, walletId: wallet.id, baseUrl: world.base }),
    await fastifyShop({ apiKey: rival.testKey, walletId: String(shared.id), baseUrl: otherBase }),
  ]
  try {
    const { account } = await aPayer(chain)
    const { sent: asMpp } = await mppxAgent({ account, dry: true }).call(`${one.url}/report`)
    const [asV2 = {}, asV1 = {}] = await asX402(`${one.url}/report`, asMpp.authorization ?? '')
    const paymentPayload = decodePaymentSignatureHeader(asV2['payment-signature'] ?? '')
    const verifyFirst = { x402Version: 2, paymentPayload, paymentRequirements: { ...paymentPayload.accepted } }
    const settleFirst = withRequirements(verifyFirst, { extra: { paymentFlow: 'upfront' } })
    const shown = [one, two].flatMap(({ url }) =>
      [asMpp, asV2, asV1].flatMap((headers) =>
        [`${url}/report`, `${url}/report?other`].map((at) => fetch(at, { headers })),
      ),
    )
    // A server as the official ones are: it serves if the payment is valid and then settles, or it settles first.
    const facilitated = [org.testKey, rival.testKey, org.liveKey, rival.liveKey].flatMap((key) => {
      const [facilitator, other] = [facilitatorOf(world.base, key), facilitatorOf(otherBase, key)]
      const verified = facilitator.verify(verifyFirst)
      return [
        verified.then((response) => (response.body.isValid ? other.settle(verifyFirst) : response)),
        other.settle(settleFirst),
      ]
    })
    const [answers, verdicts] = await Promise.all([Promise.all(shown), Promise.all(facilitated)])
    const sold =
      answers.filter(({ status }) => status === 200).length + verdicts.filter(({ body }) => body.success).length
    expect(answers.filter(({ status }) => ![200, 402, 409].includes(status))).toEqual([])
    const logs = [...(await logsOf(world, org, wallet.id)), ...(await logsOf(world, rival, String(shared.id)))]
    expect([sold, logs.length, await tokenBalance(chain, 'USDC', wallet.address)]).toEqual([1, 1, rawPrice])
    expect([...one.served, ...two.served].length).toBeLessThanOrEqual(1)
    expect([...one.faults, ...two.faults]).toEqual([])
  } finally {
    await one.stop()
    await two.stop()
  }
})
