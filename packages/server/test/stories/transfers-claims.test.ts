import { fundNative } from '@purser/devnet'
import { createTestClient, http, pad } from 'viem'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPartnerStage, bridgeOf, type Managed, type PartnerStage, stranger } from '../partner-stage.ts'

// A partner's delivery may need a transaction of the master on the other chain: a claim.
let stage: PartnerStage

beforeAll(async () => {
  stage = await aPartnerStage()
})
afterAll(() => stage?.stop())
beforeEach(() => stage.renew())

/** A master with gas on both chains, so that it can pay for claims. */
async function aClaimant(): Promise<Managed> {
  const master = await stage.aMaster()
  await fundNative(stage.ethereum, master.address, 10n ** 18n)
  return master
}

/** A delivery whose claim is a payment of nothing to a stranger. */
function claimable() {
  const call = { chainId: stage.ethereum.chainId, to: stranger(), value: 0n, data: '0x' } as const
  return { state: 'claimable', partnerStatus: 'complete', call } as const
}

function delivered() {
  return { state: 'completed', partnerStatus: 'complete', message: pad(stranger()) } as const
}

const Claims = z.object({ signed: z.bigint(), done: z.bigint() })

/** The claims that a master has signed, and those of them whose blocks are final. */
function claimsOf({ address }: Managed) {
  return stage.world.database.db.one(
    Claims,
    sql`select count(*) as signed, count(done_at) as done from transfer_steps where sender = ${address} and kind = 'claim'`,
  )
}

test('if claims do not deliver the money, three are sent, and the transfer then waits for a claim by another sender', async () => {
  const master = await aClaimant()
  let isDelivered = false
  let polls = 0
  const claim = claimable()
  stage.conduct = {
    status: async () => {
      polls += 1
      return isDelivered ? delivered() : claim
    },
  }
  const sent = await stage.send(bridgeOf(master))
  await expect.poll(() => stage.partnerStatusOf(sent)).toBe('complete: claims failed')
  const before = polls
  await expect.poll(() => polls).toBeGreaterThan(before + 2)
  expect(await claimsOf(master)).toEqual({ signed: 3n, done: 3n })
  expect((await stage.get(sent)).status).toBe('pending')
  isDelivered = true
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  expect(await claimsOf(master)).toEqual({ signed: 3n, done: 3n })
})

test('a status from before a claim’s block makes no second claim, however late it arrives', async () => {
  const master = await aClaimant()
  const claim = claimable()
  const node = createTestClient({ mode: 'anvil', transport: http(stage.ethereum.rpcUrl) })
  await node.setAutomine(false)
  stage.conduct = {
    status: async () => {
      const { signed, done } = await claimsOf(master)
      if (done > 0n) return delivered()
      // The partner read the chain before the claim's block, and its response arrives after it.
      const isDone = async () => {
        await node.mine({ blocks: 1 })
        return (await claimsOf(master)).done
      }
      if (signed > 0n) await expect.poll(isDone, { interval: 50 }).toBe(1n)
      return claim
    },
  }
  const sent = await stage.send(bridgeOf(master))
  expect(await stage.ended(sent)).toMatchObject({ status: 'confirmed' })
  await node.setAutomine(true)
  expect(await claimsOf(master)).toEqual({ signed: 1n, done: 1n })
})
