import { afterAll, beforeAll, expect, test } from 'vitest'
import { SettleResponseSchema, VerifyResponseSchema } from 'x402/types'
import { useFacilitator } from 'x402/verify'
import { aPaymentBody, asV1, type FacilitatorBody, facilitatorOf } from '../../server/test/facilitated.ts'
import { aPayer, aWorld, type CredentialChanges, type Org, type Payer, type World } from '../../server/test/world.ts'
import { type DevChain, startChain } from '../src/chains.ts'
import { tokenBalance } from '../src/faucet.ts'
import { officialFacilitator } from './official-verdicts.ts'

let chain: DevChain
let world: World
let org: Org
let payer: Payer
let wallet: { id: string; address: `0x${string}` }

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain] })
  org = await world.organisation()
  wallet = await world.wallet(org)
  payer = await aPayer(chain)
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const stranger = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
const now = Math.floor(Date.now() / 1000)

function signed(changes: CredentialChanges['sign'] = {}): Promise<FacilitatorBody> {
  return aPaymentBody(world, org, { payer, wallet, changes: { sign: changes } })
}

/** A payment changed after it was signed. */
async function tampered(authorization: Record<string, unknown>, signature?: string): Promise<FacilitatorBody> {
  const after: CredentialChanges['after'] = ({ payload }) => {
    Object.assign(payload.authorization, authorization)
    if (signature !== undefined) payload.signature = signature
  }
  return aPaymentBody(world, org, { payer, wallet, changes: { after } })
}

async function requestedFor(change: Record<string, unknown>): Promise<FacilitatorBody> {
  const body = await signed()
  return { ...body, paymentRequirements: { ...body.paymentRequirements, ...change } }
}

/** A payment that claims to accept other requirements than the server's. */
async function accepting(change: Record<string, unknown>): Promise<FacilitatorBody> {
  const body = await signed()
  const accepted = { ...body.paymentRequirements, ...change }
  return { ...body, paymentPayload: { ...body.paymentPayload, accepted } }
}

async function bodies(): Promise<Readonly<Record<string, FacilitatorBody>>> {
  const poor = await aPayer(chain, 9_999n)
  const spent = await signed()
  await facilitatorOf(world.base, org.testKey).verify(spent)
  await facilitatorOf(world.base, org.testKey).settle(spent)
  return {
    good: await signed(),
    spent,
    'to another account': await signed({ to: stranger }),
    'too old': await signed({ validBefore: String(now - 1) }),
    'not yet valid': await signed({ validAfter: String(now + 600) }),
    'too little': await signed({ value: '9999' }),
    'too much': await signed({ value: '10001' }),
    nothing: await signed({ value: '0' }),
    'of a payer without funds': await aPaymentBody(world, org, { payer: poor, wallet }),
    'value changed': await tampered({ value: '1' }),
    'payer changed': await tampered({ from: stranger }),
    'receiver changed': await tampered({ to: stranger }),
    'nonce changed': await tampered({ nonce: `0x${'11'.repeat(32)}` }),
    'validBefore changed': await tampered({ validBefore: String(now + 4_000) }),
    'empty signature': await tampered({}, '0x'),
    'short signature': await tampered({}, '0x1234'),
    'no signature at all': await tampered({}, 'garbage'),
    'requested without a domain': await requestedFor({ extra: {} }),
  }
}

test.each([
  ['2', (body: FacilitatorBody) => body],
  ['1', asV1],
])(
  'on the same inputs of version %s the verdict and its reason are those of the official facilitator',
  async (_, written) => {
    const official = officialFacilitator(chain)
    const facilitator = facilitatorOf(world.base, org.testKey)
    const verdicts: Record<string, unknown> = {}
    const expected: Record<string, unknown> = {}
    for (const [name, body] of Object.entries(await bodies())) {
      const { paymentPayload, paymentRequirements } = JSON.parse(JSON.stringify(written(body)))
      const theirs = await official.verify(paymentPayload, paymentRequirements)
      const ours = await facilitator.verify(written(body))
      expected[name] = [theirs.isValid, theirs.invalidReason, theirs.payer]
      verdicts[name] = [ours.body.isValid, ours.body.invalidReason, ours.body.payer]
    }
    expect(verdicts).toEqual(expected)
  },
)

test('where the two halves of version 2 disagree, the reason is the official one', async () => {
  const official = officialFacilitator(chain)
  const facilitator = facilitatorOf(world.base, org.testKey)
  for (const body of [await accepting({ scheme: 'upto' }), await accepting({ network: 'eip155:8453' })]) {
    const { paymentPayload, paymentRequirements } = JSON.parse(JSON.stringify(body))
    const theirs = await official.verify(paymentPayload, paymentRequirements)
    expect((await facilitator.verify(body)).body.invalidReason).toBe(theirs.invalidReason)
  }
})

test('the version 1 client of the official package verifies and settles here, and its schemas take the answers', async () => {
  const { paymentPayload, paymentRequirements } = JSON.parse(JSON.stringify(asV1(await signed())))
  const headers = { Authorization: `Bearer ${org.testKey}` }
  const { verify, settle, supported } = useFacilitator({
    url: `http://127.0.0.1:${world.server.port}/facilitator`,
    createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
  })
  const before = await tokenBalance(chain, 'USDC', wallet.address)
  expect(VerifyResponseSchema.parse(await verify(paymentPayload, paymentRequirements))).toEqual({
    isValid: true,
    payer: payer.account.address,
  })
  const settled = SettleResponseSchema.parse(await settle(paymentPayload, paymentRequirements))
  expect(settled).toMatchObject({ success: true, network: 'base-sepolia', payer: payer.account.address })
  expect((await tokenBalance(chain, 'USDC', wallet.address)) - before).toBe(10_000n)
  expect((await supported()).kinds).toContainEqual({ x402Version: 1, scheme: 'exact', network: 'base-sepolia' })
})
