import type { Address } from '@purser/protocol'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createFakeScreening, type FakeScreening } from '../../server/test/screening-double.ts'
import { aWorld, type Org, request, type World } from '../../server/test/world.ts'
import { type DevChain, startChain, tokenBalance } from '../src/index.ts'
import { aPermit2Payer, requirementsOf } from './official-permit2-payers.ts'

let chain: DevChain
let world: World
let org: Org
let screening: FakeScreening

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  screening = createFakeScreening(() => new Date())
  world = await aWorld({ chains: [chain], boot: { screening } })
  org = await world.organisation()
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

test.each(['exact', 'upto'] as const)(
  'a Permit2 payment of scheme %s whose payer is sanctioned after verify is refused at settle and never sent',
  async (scheme) => {
    const payTo = privateKeyToAddress(generatePrivateKey())
    const payer = await aPermit2Payer(chain)
    const facilitatorAddress = world.server.settlerAddress as Address
    const paymentRequirements = requirementsOf(chain, { scheme, amount: '10000', payTo, facilitatorAddress })
    const paymentPayload = await payer.sign(paymentRequirements)
    const ask = (verb: 'verify' | 'settle') =>
      request(world.base, {
        key: org.testKey,
        method: 'POST',
        path: `/facilitator/${verb}`,
        body: { x402Version: 2, paymentPayload, paymentRequirements },
      })
    expect((await ask('verify')).body.isValid).toBe(true)
    screening.setResult(payer.address, { result: 'flagged', reason: 'listed', oracle: 'clean' })
    expect((await ask('settle')).body).toMatchObject({
      success: false,
      errorReason: 'payer_sanctioned',
      transaction: '',
    })
    // Queued transactions are sent before those of a later payment.
    const other = await aPermit2Payer(chain)
    const later = await other.sign(paymentRequirements)
    const settled = await request(world.base, {
      key: org.testKey,
      method: 'POST',
      path: '/facilitator/settle',
      body: { x402Version: 2, paymentPayload: later, paymentRequirements },
    })
    expect(settled.body.success).toBe(true)
    expect(await tokenBalance(chain, 'USDC', payTo)).toBe(10_000n)
  },
)
