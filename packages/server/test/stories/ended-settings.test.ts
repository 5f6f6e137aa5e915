import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, ownerOf } from '../people.ts'
import { type Answer, aWorld, codeOf, request, type World } from '../world.ts'

// What lasts, such as the address that gets the events, is not set by a key that was revoked while the request waited.

let world: World
let org: Awaited<ReturnType<World['organisation']>>
const patient = { timeout: 20_000 }
const keys = '/organisations/current/api-keys'
const url = 'https://example.com/hook'
const webhook = { url, events: ['payment.settled'] }

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
})
afterAll(() => world?.stop())

const call = (method: string, path: string, body?: unknown) => world.call(org.testKey, method, path, body)
const own = async (path: string, body: unknown) => String((await call('POST', path, body)).body.id)

async function isWaiting(): Promise<boolean> {
  const waits = sql`select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as is`
  return (await world.database.db.one(z.object({ is: z.boolean() }), waits)).is
}

const settings = {
  'a new webhook': async () => ['POST', '/webhooks', webhook] as const,
  'another address of a webhook': async () =>
    ['PATCH', `/webhooks/${await own('/webhooks', webhook)}`, { url: `${url}/2` }] as const,
  'a new secret of a webhook': async () =>
    ['POST', `/webhooks/${await own('/webhooks', webhook)}/rotate-secret`, undefined] as const,
  'a new bank account': async () =>
    [
      'POST',
      '/wallet-infra/bank-accounts',
      { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' },
    ] as const,
  'another name of the organisation': async () => ['PATCH', '/organisations/current', { name: 'Other' }] as const,
}

test.each(Object.entries(settings))(
  '%s of a key that is revoked while the request waits is refused',
  async (_, made) => {
    const [method, path, body] = await made()
    const key = z
      .object({ id: z.string(), key: z.string() })
      .parse((await call('POST', keys, { name: 'agent', environment: 'test' })).body)
    let sent: Promise<Answer> | undefined
    const locked =
      path === '/organisations/current'
        ? sql`select from organisations where id = ${org.id} for update`
        : sql`lock table webhooks, webhook_queues, bank_accounts in exclusive mode`
    await world.database.db.tx(async (tx) => {
      await tx.run(locked)
      sent = request(world.base, { key: key.key, method, path, body })
      await expect.poll(isWaiting, patient).toBe(true)
      // In this transaction where the revocation would wait for its lock.
      if (path === '/organisations/current')
        await tx.run(sql`update api_keys set revoked_at = now() where organisation_id = ${org.id} and id = ${key.id}`)
      else expect((await call('DELETE', `${keys}/${key.id}`)).status).toBe(204)
    })
    const answer = await sent
    expect([answer?.status, answer === undefined ? '' : codeOf(answer)]).toEqual([401, 'unauthorized'])
  },
)

test.each([
  ['accepts no invitation', 'accept'],
  ['creates no organisation', 'create'],
] as const)('a person who signs out while the request waits %s', async (_, kind) => {
  const { db } = world.database
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const email = `${kind}-late@example.com`
  expect((await owner.call('POST', '/organisations/current/members', { email, role: 'admin' })).status).toBe(201)
  const guest = await aBrowser(world, { email })
  const accountId = String((await guest.call('GET', '/account')).body.id)
  const [path, body] =
    kind === 'accept'
      ? [`/account/invitations/${org.id}/accept`, undefined]
      : ['/organisations', { name: 'Late', type: 'team' }]
  let sent: Promise<Answer> | undefined
  await db.tx(async (tx) => {
    await tx.run(
      kind === 'accept'
        ? sql`select from members where organisation_id = ${org.id} and account_id = ${accountId} for update`
        : sql`select from accounts where id = ${accountId} for update`,
    )
    sent = guest.call('POST', path, body)
    await expect.poll(isWaiting, patient).toBe(true)
    await db.run(
      sql`delete from auth."session" where "userId" = (select user_id from accounts where id = ${accountId})`,
    )
  })
  const answer = await sent
  expect([answer?.status, answer === undefined ? '' : codeOf(answer)]).toEqual([401, 'unauthorized'])
  const joined = await db.run(sql`select from members where account_id = ${accountId} and accepted_at is not null`)
  expect(joined).toBe(0)
})
