import { createTestClient, http } from 'viem'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aPartnerStage, bridgeOf, type Managed, masters, type PartnerStage } from '../partner-stage.ts'
import { aBrowser, type Browser, invite, ownerOf } from '../people.ts'
import type { Answer } from '../world.ts'

let stage: PartnerStage
let admin: Browser

beforeAll(async () => {
  stage = await aPartnerStage()
  const { world, org } = stage
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  admin = await invite(world, { owner, organisationId: org.id, email: 'second@example.com', role: 'admin' })
})
afterAll(() => stage?.stop())

const patient = { timeout: 60_000 }

/** A bridge that has waited twenty minutes for an approval. */
async function aWaiting(master: Managed): Promise<Answer> {
  const sent = await stage.send(bridgeOf(master, { amount: '20' }))
  expect(sent.status).toBe(202)
  await stage.world.database.db.run(
    sql`update transfers set created_at = created_at - interval '20 minutes' where id = ${String(sent.body.id)}`,
  )
  return sent
}

async function approve({ body }: Answer): Promise<void> {
  const { id } = z.object({ id: z.string() }).parse(body.approval)
  expect((await admin.call('POST', `/approvals/${id}/approve`)).status).toBe(200)
}

const Row = z.object({ reason: z.string().nullable(), lookAt: z.date().nullable(), state: z.string().nullable() })

function rowOf({ body }: Answer) {
  return stage.world.database.db.one(
    Row,
    sql`
    select t.reason, t.look_at, a.state from transfers t left join approvals a on a.transfer_id = t.id where t.id = ${String(body.id)}`,
  )
}

test('bridges that were approved long after their request wait for each other at one contract', async () => {
  const node = createTestClient({ mode: 'anvil', transport: http(stage.base.rpcUrl) })
  const master = await stage.aMaster()
  const policy = { operations: { transfer: { recipients: 'any' } }, tokens: { USDC: { approvalAbove: '5' } } }
  const set = await stage.world.call(stage.org.testKey, 'PUT', `${masters}/${master.id}/policy`, policy)
  expect(set.status).toBe(200)
  const [first, second] = [await aWaiting(master), await aWaiting(master)]
  await node.setAutomine(false)
  await approve(first)
  await expect.poll(async () => (await rowOf(first)).state, patient).toBe('active')
  await approve(second)
  await expect.poll(async () => (await rowOf(second)).state, patient).toBe('waiting')
  const { lookAt } = await rowOf(second)
  await expect.poll(async () => (await rowOf(second)).lookAt?.getTime(), patient).not.toBe(lookAt?.getTime())
  expect(await rowOf(second)).toMatchObject({ reason: null, state: 'waiting' })
  await node.setAutomine(true)
  await node.mine({ blocks: 1 })
  for (const sent of [first, second]) {
    await expect
      .poll(async () => {
        await stage.relayer.pass()
        return (await stage.get(sent)).status
      }, patient)
      .not.toBe('pending')
    expect(await stage.get(sent)).toMatchObject({ status: 'confirmed' })
  }
})
