import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { shareFirst } from '../../src/features/webhooks/delivery/endpoint.ts'
import { leaseQueues } from '../../src/features/webhooks/delivery/queue-store.ts'
import { WebhookWorker } from '../../src/features/webhooks/index.ts'
import { type Db, type Sql, sql } from '../../src/platform/db/db.ts'
import { createGuardedFetch } from '../../src/platform/guarded-fetch.ts'
import { createProbe } from '../../src/platform/work/due-work.ts'
import type { Answering } from '../webhooks/receiver.ts'
import { aStage, type Hook, type Stage } from '../webhooks/stage.ts'

let stage: Stage

beforeAll(async () => {
  stage = await aStage()
})
afterAll(() => stage?.stop())

function countsOf(hooks: readonly Hook[], sent: readonly string[]) {
  const lost = hooks.flatMap(({ receiver }) => sent.filter((id) => !receiver.ids().includes(id))).length
  const arrived = hooks.reduce((sum, { receiver }) => sum + receiver.arrived.length, 0)
  return { lost, arrived, duplicates: arrived - sent.length * hooks.length }
}

test('1,000 events over two processes that share the work arrive, each at each of four webhooks, none twice', async () => {
  const org = await stage.world.organisation()
  const another = await stage.world.another({ role: 'work' })
  const hooks = await Promise.all(Array.from({ length: 4 }, () => stage.hook(org)))
  const sent: string[] = []
  for (let batch = 0; batch < 20; batch++) sent.push(...(await stage.publish(org, 50)))
  await Promise.all(hooks.map(({ receiver }) => receiver.until(1_000)))
  await expect.poll(() => stage.deliveries(hooks[0])).toEqual({ succeeded: 1_000 })
  const counts = countsOf(hooks, sent)
  console.log('two processes:', counts)
  expect(counts).toEqual({ lost: 0, arrived: 4_000, duplicates: 0 })
  await another.server.stop()
})

test('the deliveries of a process that died are sent by another when its lease ends, and not before', async () => {
  const org = await stage.world.organisation()
  const hook = await stage.hook(org)
  const now = stage.clock.now()
  const { db } = stage.world.database
  const until = new Date(now.getTime() + 30_000)
  const leased = await db.tx(async (tx) => {
    await tx.run(sql`update webhook_queues set look_at = ${now} where webhook_id = ${hook.id}`)
    return leaseQueues(tx, { name: 'a-process-that-died', now, until }, 1_000)
  })
  expect(leased.map(({ webhookId }) => webhookId)).toContain(hook.id)
  const witness = await stage.hook(org)
  const [eventId] = await stage.publish(org)
  await witness.receiver.until(1)
  expect(hook.receiver.arrived).toHaveLength(0)
  stage.clock.forward(30_001)
  await hook.receiver.until(1)
  expect(hook.receiver.ids()).toEqual([eventId])
})

test('while endpoints hang, with 1,000 deliveries queued, others get all of theirs before the first of those has ended', async () => {
  const own = await aStage('api')
  const [org, other] = [await own.world.organisation(), await own.world.organisation()]
  const quick = await Promise.all([own.hook(org), own.hook(org)])
  const hanging = await Promise.all(Array.from({ length: 10 }, () => own.hook(other, { answer: () => undefined })))
  const worker = aPatientWorker(own)
  await own.publish(other, 100)
  await Promise.all(hanging.map(({ receiver }) => receiver.until(shareFirst)))
  for (let number = 1; number <= 20; number++) {
    await own.publish(org, 10)
    await Promise.all(quick.map(({ receiver }) => receiver.until(10 * number)))
  }
  for (const hook of hanging) {
    expect(await own.deliveries(hook)).toEqual({ pending: 100 })
    expect(hook.receiver.arrived, 'its share and no more').toHaveLength(shareFirst)
    expect(await own.attempts(other, hook), 'none has ended').toEqual([])
  }
  await endHanging(worker, hanging)
  await own.stop()
})

/** A worker whose requests may hang for longer than these tests take. */
function aPatientWorker({ world }: Stage, limits?: ConstructorParameters<typeof WebhookWorker>[1]): WebhookWorker {
  const guardedFetch = createGuardedFetch({ reach: 'public-and-private', limits: { totalMs: 600_000 } })
  return new WebhookWorker({ ...world.server.deps, guardedFetch }, limits)
}

async function endHanging(worker: WebhookWorker, hanging: readonly Hook[]): Promise<void> {
  const stopped = worker.stop()
  for (const { receiver } of hanging) await receiver.stop()
  await stopped
}

test('while more endpoints of an organisation hang than a process has slots, a delivery of another arrives before the first of those has ended', async () => {
  const own = await aStage('api')
  const [org, other] = [await own.world.organisation('enterprise'), await own.world.organisation()]
  const hanging = await Promise.all(Array.from({ length: 24 }, () => own.hook(org, { answer: () => undefined })))
  const worker = aPatientWorker(own, { endpointsMax: 8, turnMs: 200 })
  for (let count = 0; count < 4; count++) await own.publish(org)
  const begun = () => hanging.filter(({ receiver }) => receiver.arrived.length > 0).length
  await expect.poll(begun).toBeGreaterThanOrEqual(4)
  const hook = await own.hook(other)
  for (let number = 1; number <= 3; number++) {
    await own.publish(other)
    await hook.receiver.until(number)
  }
  expect(begun(), 'slots of the organisation').toBeLessThanOrEqual(4)
  for (const one of hanging) expect(await own.attempts(org, one), 'none has ended').toEqual([])
  await endHanging(worker, hanging)
  await own.stop()
})

test.each([
  ['of one organisation', 1],
  ['of three organisations', 3],
])('where more endpoints %s have work than a process has slots, they take turns', async (_, count) => {
  const own = await aStage('api')
  const organisations = await Promise.all(Array.from({ length: count }, () => own.world.organisation()))
  const [first, second = first, third = first] = organisations
  if (first === undefined || second === undefined || third === undefined) throw new Error('there is no organisation')
  let hasArrived = false
  // So slow that many turns pass before all is delivered.
  const slowly: Answering = (response) => void setTimeout(() => response.writeHead(200).end(), hasArrived ? 0 : 100)
  const busy = await Promise.all([own.hook(first, { answer: slowly }), own.hook(second, { answer: slowly })])
  for (const org of new Set([first, second])) await own.publish(org, 1_000)
  const worker = new WebhookWorker(own.world.server.deps, { endpointsMax: 2, turnMs: 200 })
  await Promise.all(busy.map(({ receiver }) => receiver.until(8)))
  const late = await own.hook(third, { events: ['vault.expired'] })
  await own.publish(third, 1, 'vault.expired')
  await late.receiver.until(1)
  hasArrived = true
  expect(Math.max(...busy.map(({ receiver }) => receiver.arrived.length))).toBeLessThan(900)
  // With one organisation, the busy endpoints get the late event too.
  const each = count === 1 ? 1_001 : 1_000
  await Promise.all(busy.map(({ receiver }) => receiver.until(each)))
  await worker.stop()
  expect(await own.deliveries()).toEqual({ succeeded: 2 * each + 1 })
  await own.stop()
})

test('an idle worker sends no statement but the one that looks for all work of its process', async () => {
  const own = await aStage('api')
  const { deps } = own.world.server
  const texts: string[] = []
  const seen = <Args extends [unknown, Sql], Result>(send: (...args: Args) => Result) => {
    return (...args: Args): Result => {
      texts.push(args[1].text)
      return send(...args)
    }
  }
  const db: Db = {
    ...deps.db,
    one: seen(deps.db.one.bind(deps.db)) as Db['one'],
    many: seen(deps.db.many.bind(deps.db)) as Db['many'],
  }
  const worker = new WebhookWorker({ ...deps, db, probe: createProbe({ db, log: deps.log }) })
  // Its loops run once at their start.
  await expect.poll(() => texts.length >= 14 && new Set(texts.slice(-10)).size).toBe(1)
  texts.length = 0
  await expect.poll(() => texts.length).toBeGreaterThanOrEqual(20)
  expect(new Set(texts).size).toBe(1)
  await worker.stop()
  await own.stop()
})

test('ten thousand endpoints that wait for a retry are not read one by one', async () => {
  const own = await aStage('api')
  const org = await own.world.organisation()
  const { deps } = own.world.server
  const far = new Date(own.clock.now().getTime() + 3_600_000)
  await deps.db.run(sql`
    insert into webhooks (id, organisation_id, environment, url, events, created_at)
    select 'wh_' || n, ${org.id}, 'test', 'http://127.0.0.1:9/', array['vault.sealed'], ${own.clock.now()} from generate_series(1, 10000) n`)
  await deps.db.run(sql`insert into webhook_queues (webhook_id, look_at) select id, ${far} from webhooks`)
  await deps.db.run(sql`analyze webhook_queues`)
  const due = { name: 'x', now: own.clock.now(), until: far }
  expect(await leaseQueues(deps.db, due, 1_000)).toEqual([])
  const plan = await deps.db.many(
    z.object({ 'QUERY PLAN': z.string() }),
    sql`explain select webhook_id from webhook_queues where look_at <= ${own.clock.now()} order by look_at limit 1000`,
  )
  expect(JSON.stringify(plan)).toContain('webhook_queues_due')
  await own.stop()
})

test('deliveries continue after every database connection was cut, and nothing is lost', async () => {
  const own = await aStage()
  const org = await own.world.organisation()
  const hook = await own.hook(org, { answer: (response) => void setTimeout(() => response.writeHead(200).end(), 5) })
  const sent = [...(await own.publish(org, 300))]
  for (let cut = 0; cut < 3; cut++) {
    await hook.receiver.until(50 * (cut + 1))
    await own.world.database.db
      .run(
        sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      )
      .catch(() => undefined)
  }
  await expect
    .poll(async () => (sent.length < 400 ? sent.push(...(await own.publish(org, 100))) : sent.length))
    .toBe(400)
  await expect.poll(() => own.deliveries(hook), { timeout: 240_000, interval: 200 }).toEqual({ succeeded: 400 })
  console.log('connections cut thrice:', countsOf([hook], sent))
  expect(countsOf([hook], sent).lost).toBe(0)
  await own.stop()
})

test('disabling and enabling a webhook while its deliveries are recorded causes no deadlock, and ended ones are replayed', async () => {
  const org = await stage.world.organisation()
  const hook = await stage.hook(org)
  const sent: string[] = []
  for (let turn = 0; turn < 20; turn++) {
    sent.push(...(await stage.publish(org, 50)))
    await hook.receiver.until(hook.receiver.arrived.length + 1)
    for (const isActive of [false, true])
      expect((await stage.world.call(org.testKey, 'PATCH', `/webhooks/${hook.id}`, { isActive })).status).toBe(200)
    const replayed = await stage.world.call(org.testKey, 'POST', `/webhooks/${hook.id}/replay`, {
      since: '2020-01-01T00:00:00Z',
    })
    expect(replayed.status).toBe(202)
  }
  await expect.poll(async () => (await stage.deliveries(hook)).pending, { timeout: 90_000 }).toBeUndefined()
  await stage.world.call(org.testKey, 'POST', `/webhooks/${hook.id}/replay`, { since: '2020-01-01T00:00:00Z' })
  await expect.poll(async () => (await stage.deliveries(hook)).pending, { timeout: 90_000 }).toBeUndefined()
  expect(countsOf([hook], sent).lost).toBe(0)
})
