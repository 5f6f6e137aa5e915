import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type World } from '../../../test/world.ts'
import type { Ctx } from '../ctx.ts'
import { sql } from '../db/db.ts'
import { newId } from '../ids.ts'
import { makeCtx } from './call.ts'
import { claimWithLease, finishLease, leaseHandle } from './idempotency.ts'

let world: World
let ctx: Ctx

beforeAll(async () => {
  world = await aWorld()
  const { deps } = world.server
  const { id } = await world.organisation()
  ctx = makeCtx(
    deps,
    { tenant: { organisationId: id, environment: 'test' }, actor: { kind: 'operator' } },
    newId('req', deps),
  )
})
afterAll(() => world?.stop())

test('of a slow request and the repeat that took its key over, the repeat alone takes effect', async () => {
  const asked = { key: 'slow', fingerprint: Buffer.alloc(32, 1) }
  expect(await claimWithLease(ctx, asked, 'first')).toEqual({ kind: 'first' })
  await world.database.db.run(
    sql`update idempotency_keys set running_until = now() - interval '1 second' where key = 'slow'`,
  )
  expect(await claimWithLease(ctx, asked, 'repeat')).toEqual({ kind: 'first' })

  const overtaken = ctx.db.tx(async (tx) => {
    await tx.run(sql`create table effect_of_the_first ()`)
    await leaseHandle(ctx, asked, 'first').commit(tx, 'wtx_1')
  })
  await expect(overtaken).rejects.toMatchObject({ code: 'idempotency-in-progress' })
  const undone = sql`select 1 from pg_tables where tablename = 'effect_of_the_first'`
  expect(await world.database.db.run(undone), 'what it did is undone').toBe(0)

  await ctx.db.tx((tx) => leaseHandle(ctx, asked, 'repeat').commit(tx, 'wtx_2'))
  await finishLease(ctx, asked, 'first', { status: 201, headers: {}, body: Buffer.from('first') })
  await finishLease(ctx, asked, 'repeat', { status: 201, headers: {}, body: Buffer.from('repeat') })
  expect(await claimWithLease(ctx, asked, 'third')).toMatchObject({
    kind: 'answered',
    answer: { body: Buffer.from('repeat') },
  })
})
