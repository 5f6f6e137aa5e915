import net from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aWorld, type Org, type World } from '../world.ts'

const mebibyte = 1_048_576
let world: World
let stranger: Org
/** Of one account. */
let orgs: Org[]
const sockets: net.Socket[] = []

beforeAll(async () => {
  world = await aWorld({
    config: {
      role: 'api',
      bodiesBytesMax: 4 * mebibyte,
      databaseConnectionsMax: 6,
    },
  })
  orgs = await ofOneAccount(world)
  stranger = await world.organisation('hobby')
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await world?.stop()
})

const Made = z.object({ id: z.string(), apiKeys: z.tuple([z.object({ key: z.string() })]) })

async function another({ call }: World, org: Org): Promise<Org> {
  const { id, apiKeys } = Made.parse((await call(org.testKey, 'POST', '/organisations', { name: 'More' })).body)
  return { id: id as Org['id'], testKey: apiKeys[0].key, liveKey: '' }
}

async function ofOneAccount(at: World): Promise<Org[]> {
  const all = [await at.organisation('hobby')]
  for (const [first] = all; first !== undefined && all.length < 5; ) all.push(await another(at, first))
  return all
}

/** A request whose body of a mebibyte never ends. Its socket is destroyed when it gets a response. */
function endless({ testKey }: Org): net.Socket {
  const { port } = new URL(world.base)
  const socket = net.connect(Number(port), '127.0.0.1').on('error', () => undefined)
  socket.on('data', () => socket.destroy())
  sockets.push(socket)
  socket.write(
    `POST /vaults HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${testKey}\r\ncontent-type: application/json\r\ncontent-length: ${mebibyte}\r\n\r\n{`,
  )
  return socket
}

const whole = async ({ testKey }: Org) =>
  (await world.call(testKey, 'POST', '/vaults', { description: 'x'.repeat(mebibyte - 18) })).status

test('bodies of the hobby organisations of one account leave memory for those of another account', async () => {
  const open = [...orgs, ...orgs].map((org) => ({ org, socket: endless(org) }))
  const statuses = async () => {
    // A busy machine may refuse one at first, and ends each after a minute.
    for (const one of open) if (one.socket.destroyed) one.socket = endless(one.org)
    const answers = []
    for (const org of orgs) answers.push(await whole(org))
    return answers
  }
  // Bodies that are complete are refused as 422.
  await expect.poll(statuses).not.toContain(422)
  expect(await whole(stranger)).toBe(422)
  for (const socket of sockets) socket.destroy()
})

test('statements of the hobby organisations of one account leave database connections for those of another account', async () => {
  const { db } = world.database
  const waiting = async () => {
    const { count } = await db.one(
      z.object({ count: z.bigint() }),
      sql`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return Number(count)
  }
  let renamed: Promise<unknown>[] = []
  await db.tx(async (tx) => {
    await tx.run(sql`select 1 from organisations where id = any(${orgs.map(({ id }) => id)}::text[]) for update`)
    renamed = [...orgs, ...orgs].map(({ testKey }) =>
      world.call(testKey, 'PATCH', '/organisations/current', { name: 'Renamed' }),
    )
    await expect.poll(waiting).toBeGreaterThanOrEqual(3)
    expect((await world.call(stranger.testKey, 'GET', '/organisations/current')).status).toBe(200)
    expect(await waiting()).toBe(3)
  })
  await Promise.all(renamed)
})

test('requests of the hobby organisations of one account count against one limit, and those of a paid one against its own', async () => {
  const limited = await aWorld({ config: { role: 'api', organisationLimit: { perSecond: 0.001, burst: 100 } } })
  try {
    const [own, other] = [await ofOneAccount(limited), await limited.organisation('hobby')]
    const paid = await another(limited, other)
    await limited.database.db.run(sql`update organisations set plan = 'pro' where id = ${paid.id}`)
    const get = async ({ testKey }: Org) => (await limited.call(testKey, 'GET', '/organisations/current')).status
    let admitted = 0
    while ((await get(own[admitted % 5] as Org)) === 200) admitted++
    expect(admitted).toBeLessThan(100)
    for (const org of own) expect(await get(org)).toBe(429)
    expect([await get(other), await get(paid)]).toEqual([200, 200])
  } finally {
    await limited.stop()
  }
})
