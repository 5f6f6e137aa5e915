import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { counting } from '../../../test/counting-db.ts'
import { aWorld, type World } from '../../../test/world.ts'
import type { Ctx } from '../ctx.ts'
import { sql } from '../db/db.ts'
import { id, newId } from '../ids.ts'
import { claimTogether } from './batched-keys.ts'
import { makeCtx } from './call.ts'
import { claimInTransaction, claimWithLease, finishLease, leaseHandle, storeInTransaction } from './idempotency.ts'

let world: World
let ctx: Ctx

beforeAll(async () => {
  world = await aWorld()
  const { deps } = world.server
  const { id } = await world.organisation()
  ctx = makeCtx(
    deps,
    { tenant: { organisationId: id, environment: 'test' }, actor: { kind: 'operator' }, shareOwner: id },
    newId('req', deps),
  )
})
afterAll(() => world?.stop())

test('of a slow request and the repeat that took over its key, only the repeat takes effect', async () => {
  const requested = { key: 'slow', fingerprint: Buffer.alloc(32, 1) }
  expect(await claimWithLease(ctx, requested, 'first')).toEqual({ kind: 'first' })
  await world.database.db.run(
    sql`update idempotency_keys set running_until = now() - interval '1 second' where key = 'slow'`,
  )
  expect(await claimWithLease(ctx, requested, 'repeat')).toEqual({ kind: 'first' })

  const superseded = ctx.db.tx(async (tx) => {
    await tx.run(sql`create table effect_of_the_first ()`)
    await leaseHandle(ctx, requested, 'first').commit(tx, 'wtx_1')
  })
  await expect(superseded).rejects.toMatchObject({ code: 'idempotency-in-progress' })
  const undone = sql`select 1 from pg_tables where tablename = 'effect_of_the_first'`
  expect(await world.database.db.run(undone), 'its effect is rolled back').toBe(0)

  await ctx.db.tx((tx) => leaseHandle(ctx, requested, 'repeat').commit(tx, 'wtx_2'))
  await finishLease(ctx, requested, 'first', { status: 201, headers: {}, body: Buffer.from('first') })
  await finishLease(ctx, requested, 'repeat', { status: 201, headers: {}, body: Buffer.from('repeat') })
  expect(await claimWithLease(ctx, requested, 'third')).toMatchObject({
    kind: 'answered',
    response: { body: Buffer.from('repeat') },
  })
})

test('no Idempotency-Key locks what a text of the service locks: PostgreSQL’s hash of a name can be inverted', async () => {
  const tenant = { organisationId: id('org').parse('org_01jd0000000000000000000000'), environment: 'test' } as const
  // Computed from the hash: behind the tenant’s name it had the number of the archive’s lock.
  const key = '0$0?pDHOPw%J'
  const archive = sql`select pg_try_advisory_xact_lock(hashtextextended('purser.archive', 0)) as is`
  const isFree = () => world.database.db.tx((tx) => tx.one(z.object({ is: z.boolean() }), archive))
  const requested = { key, fingerprint: Buffer.alloc(32, 3) }
  const alone = await ctx.db.tx(async (tx) => {
    expect(await claimInTransaction({ ...ctx, tenant }, tx, requested)).toEqual({ kind: 'first' })
    return isFree()
  })
  const together = await ctx.db.tx(async (tx) => {
    await claimTogether(tx, [{ ctx: { ...ctx, tenant }, key: { ...requested, storedAs: () => neverStored() } }])
    return isFree()
  })
  expect([alone, together]).toEqual([{ is: true }, { is: true }])
})

function neverStored(): never {
  throw new Error('nothing is stored')
}

test('a secret response is stored sealed, and its key is replayed to no other API key, even before there is a response', async () => {
  const sent = { key: 'secret', fingerprint: Buffer.alloc(32, 2), isSecret: true }
  const by = (apiKeyId: `key_${string}`): Ctx => ({ ...ctx, actor: { kind: 'api-key', apiKeyId } })
  const [own, other] = [by('key_own'), by('key_other')]
  await claimWithLease(own, sent, 'first')
  await ctx.db.tx((tx) => leaseHandle(own, sent, 'first').commit(tx, 'resource_1'))
  const reused = { code: 'idempotency-key-reused' }
  await expect(claimWithLease(other, sent, 'second')).rejects.toMatchObject(reused)
  expect(await claimWithLease(own, sent, 'second')).toEqual({ kind: 'unanswered', resourceId: 'resource_1' })
  await finishLease(own, sent, 'first', { status: 200, headers: {}, body: Buffer.from('the secret') })
  const stored = sql`select sealed_body from idempotency_keys where key = 'secret' and position('the secret'::bytea in sealed_body) > 0`
  expect(await world.database.db.run(stored)).toBe(0)
  await expect(claimWithLease(other, sent, 'third')).rejects.toMatchObject(reused)
  expect(await claimWithLease(own, sent, 'third')).toMatchObject({ response: { body: Buffer.from('the secret') } })
})

test('only what is stored counts: not what was rolled back, nor a response whose claim another request took over', async () => {
  const added: number[] = []
  const keptBytes = { ...ctx.keptBytes, add: (_owner: string, bytes: number) => added.push(bytes) }
  const own: Ctx = { ...ctx, keptBytes }
  const response = { status: 201, headers: {}, body: Buffer.from('counted') }
  const sent = { key: 'rolled back', fingerprint: Buffer.alloc(32, 9) }
  const store = (isFailing: boolean) =>
    ctx.db.tx(async (tx) => {
      await storeInTransaction(own, tx, sent, { response: response, secret: false })
      if (isFailing) throw new Error('it failed later')
    })
  await expect(store(true)).rejects.toThrow('it failed later')
  await finishLease(own, sent, 'of nobody', response)
  expect(added).toEqual([])
  await store(false)
  expect(added).toHaveLength(1)
})

test('a response that an earlier version stored is repeated', async () => {
  const response = { status: 201, headers: {}, body: Buffer.from('earlier') }
  for (const sealed of [false, true]) {
    const sent = { key: `earlier-${sealed}`, fingerprint: Buffer.alloc(32, 8) }
    await ctx.db.tx((tx) => storeInTransaction(ctx, tx, sent, { response: response, secret: sealed }))
    const { organisationId, environment } = ctx.tenant
    const body = sealed
      ? ctx.sealer.seal(response.body, `idempotency|${organisationId}|${environment}|${sent.key}`)
      : response.body
    await ctx.db.run(sql`update idempotency_keys set body = ${body}, sealed_body = null where key = ${sent.key}`)
    const repeated = await ctx.db.tx((tx) => claimInTransaction(ctx, tx, sent))
    expect(repeated).toMatchObject({ kind: 'answered', response: { body: response.body } })
  }
})

test('without a committed intent a refusal or a large answer leaves the key free; with one the key is kept', async () => {
  const large = Buffer.alloc(65_537, 'x')
  const outcome = async (key: string, committed: boolean, status: number, body: Buffer) => {
    const sent = { key, fingerprint: Buffer.alloc(32, 4) }
    await claimWithLease(ctx, sent, 'first')
    if (committed) await ctx.db.tx((tx) => leaseHandle(ctx, sent, 'first').commit(tx, 'wtx_4'))
    await finishLease(ctx, sent, 'first', { status, headers: {}, body })
    return (await claimWithLease(ctx, sent, 'second')).kind
  }
  expect(await outcome('refused', false, 422, Buffer.from('no'))).toBe('first')
  expect(await outcome('conflict', false, 409, Buffer.from('no'))).toBe('answered')
  expect(await outcome('large', false, 200, large)).toBe('first')
  expect(await outcome('fitting', false, 200, large.subarray(1))).toBe('answered')
  expect(await outcome('refused late', true, 422, Buffer.from('reverted'))).toBe('answered')
  expect(await outcome('large late', true, 201, large)).toBe('unanswered')
  expect(await outcome('failed late', true, 503, Buffer.from('later'))).toBe('unanswered')
})

test('a key that another API key took over is replayed to that one only', async () => {
  const sent = { key: 'taken', fingerprint: Buffer.alloc(32, 3), isSecret: true }
  const by = (apiKeyId: `key_${string}`): Ctx => ({ ...ctx, actor: { kind: 'api-key', apiKeyId } })
  await claimWithLease(by('key_own'), sent, 'first')
  await world.database.db.run(
    sql`update idempotency_keys set running_until = now() - interval '1 second' where key = 'taken'`,
  )
  expect(await claimWithLease(by('key_other'), sent, 'second')).toEqual({ kind: 'first' })
  await finishLease(by('key_other'), sent, 'second', { status: 200, headers: {}, body: Buffer.from('theirs') })
  await expect(claimWithLease(by('key_own'), sent, 'third')).rejects.toMatchObject({ code: 'idempotency-key-reused' })
})

test('of a request in a transaction and one with a lease that have one key, only one takes effect', async () => {
  const inTransaction = { key: 'both', fingerprint: Buffer.alloc(32, 3) }
  const withLease = { key: 'both', fingerprint: Buffer.alloc(32, 4) }
  const made = ctx.db.tx(async (tx) => {
    expect(await claimInTransaction(ctx, tx, inTransaction)).toEqual({ kind: 'first' })
    expect(await claimWithLease(ctx, withLease, 'lease')).toEqual({ kind: 'first' })
    await tx.run(sql`create table effect_of_the_transaction ()`)
    await storeInTransaction(ctx, tx, inTransaction, { response: stored('transaction'), secret: false })
  })
  await expect(made).rejects.toMatchObject({ code: 'idempotency-in-progress' })
  expect(await world.database.db.run(sql`select 1 from pg_tables where tablename = 'effect_of_the_transaction'`)).toBe(
    0,
  )
  await finishLease(ctx, withLease, 'lease', stored('lease'))
  expect(await claimWithLease(ctx, withLease, 'repeat')).toMatchObject({ kind: 'answered' })
})

test('a repeat gets the stored response while another request with the key is being compared', async () => {
  const requested = { key: 'compared', fingerprint: Buffer.alloc(32, 5) }
  await ctx.db.tx((tx) => storeInTransaction(ctx, tx, requested, { response: stored('response'), secret: false }))
  await ctx.db.tx(async (comparing) => {
    const other = { ...requested, fingerprint: Buffer.alloc(32, 6) }
    await expect(claimInTransaction(ctx, comparing, other)).rejects.toMatchObject({ code: 'idempotency-key-reused' })
    const repeated = await ctx.db.tx((tx) => claimInTransaction(ctx, tx, requested))
    expect(repeated).toMatchObject({ kind: 'answered', response: { body: Buffer.from('response') } })
  })
})

test('concurrent requests claim their keys, tie them and store their responses by one statement each', async () => {
  const { db, statements } = counting(world.server.deps.db)
  const own: Ctx = { ...ctx, db }
  const all = Array.from({ length: 8 }, (_, index) => ({
    key: `at once ${index}`,
    fingerprint: Buffer.alloc(32, index),
  }))
  const claims = await Promise.all(all.map((one) => claimWithLease(own, one, `claim of ${one.key}`)))
  expect(claims).toEqual(all.map(() => ({ kind: 'first' })))
  await db.tx((tx) =>
    Promise.all(all.map((one) => leaseHandle(own, one, `claim of ${one.key}`).commit(tx, `resource of ${one.key}`))),
  )
  expect(await Promise.all(all.map((one) => outcomeOf(one)))).toEqual(
    all.map(({ key }) => ({ kind: 'unanswered', resourceId: `resource of ${key}` })),
  )
  await Promise.all(all.map((one) => finishLease(own, one, `claim of ${one.key}`, stored(`response to ${one.key}`))))
  expect(await Promise.all(all.map((one) => outcomeOf(one)))).toMatchObject(
    all.map(({ key }) => ({ kind: 'answered', response: stored(`response to ${key}`) })),
  )
  expect(statements.filter((text) => text !== 'begin' && text !== 'end')).toHaveLength(3)
})

test('keys of concurrent requests are tied to resources that exist already by one statement, and one that another took over is not', async () => {
  const { db, statements } = counting(world.server.deps.db)
  const all = Array.from({ length: 8 }, (_, index) => ({ key: `alone ${index}`, fingerprint: Buffer.alloc(32, index) }))
  for (const one of all) await claimWithLease(ctx, one, `claim of ${one.key}`)
  const claimOf = (key: string) => (key === 'alone 3' ? 'of nobody' : `claim of ${key}`)
  const ties = await Promise.allSettled(
    all.map((one) => leaseHandle(ctx, one, claimOf(one.key)).commitAlone(db, `resource of ${one.key}`)),
  )
  expect(ties.map(({ status }) => status)).toEqual(all.map(({ key }) => (key === 'alone 3' ? 'rejected' : 'fulfilled')))
  expect(ties[3]).toMatchObject({ reason: { code: 'idempotency-in-progress' } })
  expect(await outcomeOf(all[4] ?? { key: '', fingerprint: Buffer.alloc(0) })).toEqual({
    kind: 'unanswered',
    resourceId: 'resource of alone 4',
  })
  expect(statements.filter((text) => text !== 'begin' && text !== 'end')).toHaveLength(1)
})

test('of concurrent requests with one key one is the first, and a claim that another took over leaves the others of its statement', async () => {
  const [own, other] = ['shared', 'beside'].map((key) => ({ key, fingerprint: Buffer.alloc(32, 7) }))
  if (own === undefined || other === undefined) throw new Error('there are two keys')
  const [first, second, beside] = await Promise.allSettled([
    claimWithLease(ctx, own, 'one'),
    claimWithLease(ctx, own, 'two'),
    claimWithLease(ctx, other, 'three'),
  ])
  expect([first, second].filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect([first, second].find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { code: 'idempotency-in-progress' },
  })
  expect(beside).toEqual({ status: 'fulfilled', value: { kind: 'first' } })
  const ties = await ctx.db.tx((tx) =>
    Promise.allSettled([
      leaseHandle(ctx, own, 'of nobody').commit(tx, 'pay_1'),
      leaseHandle(ctx, other, 'three').commit(tx, 'pay_2'),
    ]),
  )
  expect(ties).toMatchObject([
    { status: 'rejected', reason: { code: 'idempotency-in-progress' } },
    { status: 'fulfilled' },
  ])
  await Promise.all([finishLease(ctx, own, 'of nobody', stored('no')), finishLease(ctx, other, 'three', stored('yes'))])
  await expect(claimWithLease(ctx, own, 'four')).rejects.toMatchObject({ code: 'idempotency-in-progress' })
  expect(await outcomeOf(other)).toMatchObject({ kind: 'answered', response: stored('yes') })
})

test('a key that a transaction is tying to its resource delays no other key of the tenant', async () => {
  const [tying, other] = ['tying', 'not delayed'].map((key) => ({ key, fingerprint: Buffer.alloc(32, 7) }))
  if (tying === undefined || other === undefined) throw new Error('there are two keys')
  await claimWithLease(ctx, tying, 'first')
  await ctx.db.tx(async (tx) => {
    await leaseHandle(ctx, tying, 'first').commit(tx, 'pay_3')
    const claims = await Promise.allSettled([outcomeOf(tying), claimWithLease(ctx, other, 'second')])
    expect(claims).toMatchObject([
      { status: 'rejected', reason: { code: 'idempotency-in-progress' } },
      { status: 'fulfilled', value: { kind: 'first' } },
    ])
  })
})

/** The outcome of a repeat. */
function outcomeOf(requested: Parameters<typeof claimWithLease>[1]) {
  return claimWithLease(ctx, requested, 'repeat')
}

function stored(body: string) {
  return { status: 201, headers: {}, body: Buffer.from(body) }
}
