import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../src/operations.ts'
import { asKey, sendRaw } from './raw-requests.ts'
import { makeResources, type Resources } from './resources.ts'
import { samplesOf } from './samples.ts'
import { aWorld, type Org, type World } from './world.ts'

let world: World
let org: Org
let ids: Resources

/**
 * An operation that needs a second connection while it has one works alone, and deadlocks when as many run at once as
 * there are connections.
 */
beforeAll(async () => {
  world = await aWorld({ config: { databaseConnectionsMax: 1, role: 'api' } })
  org = await world.organisation()
  ids = await makeResources(world, org)
})
afterAll(async () => {
  await world?.stop()
})

const posts = operations.filter(({ method, streamsInput }) => method === 'POST' && streamsInput === undefined)

test.each(posts.map((operation) => [operation.id, operation] as const))(
  '%s with an Idempotency-Key needs no second database connection while it has one',
  async (id, operation) => {
    const { params, body } = samplesOf(ids)[id]?.() ?? {}
    const headers = { ...asKey(org.testKey), 'idempotency-key': randomUUID() }
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await sendRaw(world.base, operation, { headers, params: params ?? {}, body: text })
    // A request that waits for a second connection is refused with 503. These worlds have no chain. Operations that need one are refused after their own work on the database.
    const isAnswered = answer.status < 500 || answer.text.includes('/problems/chain-not-configured')
    expect(isAnswered, answer.text).toBe(true)
  },
)

test('an event that is not there is refused over the connection of the transaction', async () => {
  const resend = posts.find(({ id }) => id === 'events.resend')
  if (resend === undefined) throw new Error('no such operation')
  const params = { eventId: 'evt_01h455vb4pex5vsknk084sn02q' }
  const answer = await sendRaw(world.base, resend, { headers: asKey(org.testKey), params, body: '{}' })
  expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('event-not-found')])
})
