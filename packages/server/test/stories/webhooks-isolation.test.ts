import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createFanOut } from '../../src/features/webhooks/delivery/fan-out.ts'
import { leaseQueues, releaseQueues, renewQueues } from '../../src/features/webhooks/delivery/queue-store.ts'
import { endNext } from '../../src/features/webhooks/delivery-store.ts'
import { sql, type Tx } from '../../src/platform/db/db.ts'
import { newId } from '../../src/platform/ids.ts'
import { aStage, type Hook, type Stage } from '../webhooks/stage.ts'
import type { Org } from '../world.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage()
})
afterAll(() => stage?.stop())

/** Most deliveries that one transaction may change, so that none waits long for it. */
const perTransactionMax = 1_000
const waiting = 2_500

/** Does the work while a transaction has the webhook's queue locked, as a request that changes the webhook does. */
function whileLocked<T>({ id }: Hook, work: (tx: Tx) => Promise<T>): Promise<T> {
  return stage.world.database.db.tx(
    async (tx) => {
      await tx.run(sql`select 1 from webhook_queues where webhook_id = ${id} for update`)
      return work(tx)
    },
    { idleMsMax: 120_000 },
  )
}

/** Writes deliveries of one event that wait for their next attempt. */
async function insertWaiting(
  { world, clock, publish }: Stage,
  org: Org,
  { id, status }: Hook & { readonly status: 'pending' | 'dead' },
): Promise<void> {
  const now = clock.now()
  const [eventId] = await publish(org, 1, 'vault.expired')
  const ids = Array.from({ length: waiting }, () => newId('del', world.server.deps))
  const [due, ended] = status === 'pending' ? [new Date(now.getTime() + 3_600_000), null] : [null, now]
  await world.database.db.run(sql`
    insert into webhook_deliveries (id, organisation_id, environment, webhook_id, event_id, type, status, due_at, ended_at, created_at)
    select delivery_id, ${org.id}, 'test', ${id}, ${eventId}, 'vault.expired', ${status}, ${due}::timestamptz, ${ended}::timestamptz, ${now}
    from unnest(${ids}::text[]) as delivery_id`)
}

/** Returns the most deliveries of the webhook that one transaction wrote last. */
async function mostPerTransaction({ id }: Hook): Promise<number> {
  const { most } = await stage.world.database.db.one(
    z.object({ most: z.bigint().transform(Number) }),
    sql`
    select max(count) as most from (
      select count(*) from webhook_deliveries where webhook_id = ${id} group by xmin) as written`,
  )
  return most
}

const onlyPersisted = { events: ['vault.persisted'] }

test('a webhook that stays locked, and answers 410, delays no outcome of another organisation', async () => {
  const [org, other] = [await stage.world.organisation(), await stage.world.organisation()]
  const mayAnswer = Promise.withResolvers<void>()
  const gone = await stage.hook(org, {
    answer: (response) => void mayAnswer.promise.then(() => response.writeHead(410).end()),
  })
  const hook = await stage.hook(other)
  await stage.publish(org)
  await gone.receiver.until(1)
  await whileLocked(gone, async () => {
    mayAnswer.resolve()
    await expect.poll(() => stage.attempts(org, gone)).toHaveLength(1)
    await stage.publish(other)
    await hook.receiver.until(1)
    await expect.poll(() => stage.deliveries(hook), { timeout: 10_000 }).toEqual({ succeeded: 1 })
  })
  const isActive = async () => (await stage.world.call(org.testKey, 'GET', `/webhooks/${gone.id}`)).body.isActive
  await expect.poll(isActive).toBe(false)
})

test('queues that somebody has locked are neither waited for nor lost, when leases are extended and released', async () => {
  const own = await aStage('api')
  const org = await own.world.organisation()
  const [locked, free] = [await own.hook(org), await own.hook(org)]
  const { db } = own.world.database
  const now = own.clock.now()
  const lease = { name: 'a process', now, until: new Date(now.getTime() + 30_000) }
  const ids = [locked.id, free.id].sort() as Parameters<typeof renewQueues>[2]
  await db.run(sql`update webhook_queues set look_at = ${now}`)
  expect((await leaseQueues(db, lease, 10)).map(({ webhookId }) => webhookId).sort()).toEqual(ids)
  await db.tx(async (tx) => {
    await tx.run(sql`select 1 from webhook_queues where webhook_id = ${locked.id} for update`)
    expect((await renewQueues(db, lease, ids)).sort()).toEqual(ids)
    expect(await releaseQueues(db, lease, ids)).toEqual([locked.id])
  })
  expect(await releaseQueues(db, lease, ids)).toEqual([])
  expect(await renewQueues(db, lease, ids)).toEqual([])
  await own.stop()
})

test.each([
  [
    'disabled',
    (org: Org, { id }: Hook) => stage.world.call(org.testKey, 'PATCH', `/webhooks/${id}`, { isActive: false }),
  ],
  ['deleted', (org: Org, { id }: Hook) => stage.world.call(org.testKey, 'DELETE', `/webhooks/${id}`)],
] as const)('all deliveries of a webhook that is %s end, in small transactions', async (_, end) => {
  const org = await stage.world.organisation()
  const hook = await stage.hook(org, onlyPersisted)
  await insertWaiting(stage, org, { ...hook, status: 'pending' })
  expect((await end(org, hook)).status).toBeLessThan(300)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ dead: waiting })
  expect(await mostPerTransaction(hook)).toBeLessThanOrEqual(perTransactionMax)
})

test('a webhook that answers 410 is disabled however many deliveries wait, in small transactions', async () => {
  const org = await stage.world.organisation()
  const hook = await stage.hook(org, { ...onlyPersisted, answer: (response) => void response.writeHead(410).end() })
  await insertWaiting(stage, org, { ...hook, status: 'pending' })
  await stage.publish(org)
  await expect.poll(() => stage.deliveries(hook)).toEqual({ dead: waiting + 1 })
  expect(await mostPerTransaction(hook)).toBeLessThanOrEqual(perTransactionMax)
})

test('a webhook that is enabled before all its deliveries have ended keeps the others', async () => {
  const own = await aStage('api')
  const org = await own.world.organisation()
  const hook = await own.hook(org, onlyPersisted)
  await insertWaiting(own, org, { ...hook, status: 'pending' })
  const change = (isActive: boolean) => own.world.call(org.testKey, 'PATCH', `/webhooks/${hook.id}`, { isActive })
  await change(false)
  expect(await own.deliveries(hook)).toEqual({ dead: perTransactionMax, pending: waiting - perTransactionMax })
  await change(true)
  const { db } = own.world.database
  const place = { after: '' }
  const found = [await endNext(db, own.clock.now(), place), await endNext(db, own.clock.now(), place)]
  expect(found, 'it is taken from the list and not looked at again').toEqual([true, false])
  expect(await own.deliveries(hook)).toEqual({ dead: perTransactionMax, pending: waiting - perTransactionMax })
  await own.stop()
})

test('webhooks whose deliveries end take turns, whoever has older ones and however many', async () => {
  const own = await aStage('api')
  const orgs = [await own.world.organisation(), await own.world.organisation()]
  const hooks: Hook[] = []
  for (const org of orgs) {
    const hook = await own.hook(org, onlyPersisted)
    await insertWaiting(own, org, { ...hook, status: 'pending' })
    await own.world.call(org.testKey, 'PATCH', `/webhooks/${hook.id}`, { isActive: false })
    hooks.push(hook)
  }
  const { db } = own.world.database
  const place = { after: '' }
  const left: (number | undefined)[][] = []
  for (let turn = 0; turn < 4; turn += 1) {
    expect(await endNext(db, own.clock.now(), place)).toBe(true)
    const deliveries = await Promise.all(hooks.map((hook) => own.deliveries(hook)))
    left.push(deliveries.map(({ pending }) => pending))
  }
  expect(left).toEqual([
    [500, 1_500],
    [500, 500],
    [undefined, 500],
    [undefined, undefined],
  ])
  expect(await endNext(db, own.clock.now(), place)).toBe(false)
  await own.stop()
})

test('a replay since a time sends all that died, in small transactions', async () => {
  const org = await stage.world.organisation()
  const hook = await stage.hook(org, onlyPersisted)
  await insertWaiting(stage, org, { ...hook, status: 'dead' })
  const replay = await stage.world.call(org.testKey, 'POST', `/webhooks/${hook.id}/replay`, {
    since: '2020-01-01T00:00:00Z',
  })
  expect([replay.status, replay.body]).toEqual([202, { replayed: waiting }])
  const replaced = sql`select count(*) as most from webhook_deliveries where webhook_id = ${hook.id} and replayed_by is not null group by xmin`
  const counts = await stage.world.database.db.many(z.object({ most: z.bigint().transform(Number) }), replaced)
  expect(Math.max(...counts.map(({ most }) => most))).toBeLessThanOrEqual(perTransactionMax)
})

test('an organisation whose webhook stays locked delays no event of another, and gets its own afterwards', async () => {
  const [org, other] = [await stage.world.organisation(), await stage.world.organisation()]
  const [locked, free, hook] = [await stage.hook(org), await stage.hook(org), await stage.hook(other)]
  const sent = await whileLocked(locked, async () => {
    const own = await stage.publish(org, 3)
    await stage.publish(other)
    await hook.receiver.until(1)
    return [...own, ...(await stage.publish(org, 3))]
  })
  for (const { receiver } of [locked, free]) {
    await receiver.until(6)
    expect(receiver.ids().toSorted()).toEqual(sent.toSorted())
  }
})

/** Registers webhooks of the organisation that nobody delivers to. */
async function insertHooks({ world, clock }: Stage, org: Org, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => newId('wh', world.server.deps))
  await world.database.db.run(sql`
    with hooks as (
      insert into webhooks (id, organisation_id, environment, url, events, created_at)
      select id, ${org.id}, 'test', 'http://127.0.0.1:9/', array['*'], ${clock.now()} from unnest(${ids}::text[]) as id returning id)
    insert into webhook_queues (webhook_id) select id from hooks`)
}

test('events of many endpoints are written a few deliveries at a time, each once, and events of others between them', async () => {
  const own = await aStage('api')
  const [big, other, third] = [
    await own.world.organisation(),
    await own.world.organisation(),
    await own.world.organisation(),
  ]
  await insertHooks(own, big, 1_700)
  await insertHooks(own, third, 150)
  await own.publish(big, 6)
  await own.publish(third, 2)
  const hook = await own.hook(other)
  await own.publish(other)
  const fanOut = createFanOut(own.world.server.deps)
  const first = await fanOut()
  expect([first.isMore, await own.deliveries(hook)]).toEqual([true, { pending: 1 }])
  const deliveriesOf = async (org: Org) => {
    const row = z.object({ count: z.bigint().transform(Number), most: z.bigint().transform(Number) })
    return own.world.database.db.one(
      row,
      sql`
      select coalesce(sum(count), 0)::bigint as count, coalesce(max(count), 0) as most from (
        select count(*) from webhook_deliveries where organisation_id = ${org.id} group by xmin) as written`,
    )
  }
  await fanOut()
  expect((await deliveriesOf(third)).count, 'after one turn of the first').toBe(300)
  await insertHooks(own, big, 10)
  while ((await fanOut()).isMore);
  expect(await deliveriesOf(big)).toEqual({ count: expect.any(Number), most: 1_000 })
  const { pairs, events } = await own.world.database.db.one(
    z.object({ pairs: z.bigint().transform(Number), events: z.bigint().transform(Number) }),
    sql`
    select count(distinct (event_id, webhook_id)) as pairs, count(distinct event_id) as events
    from webhook_deliveries where organisation_id = ${big.id}`,
  )
  const { count } = await deliveriesOf(big)
  expect({ pairs, events, isAll: count >= 6 * 1_700 && count <= 6 * 1_710 }).toEqual({
    pairs: count,
    events: 6,
    isAll: true,
  })
  await own.stop()
})
