import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { sql } from '../../src/platform/db/db.ts'
import { aBrowser, type Browser, invite, ownerOf } from '../people.ts'
import { aWorld, codeOf, type World } from '../world.ts'

// What needs a fresh sign-in must not be had by a new member, whom a session that is not fresh invites.

let world: World
let org: Awaited<ReturnType<World['organisation']>>
let owner: Browser

const members = '/organisations/current/members'
const outside = { 'x-service-organisation': undefined }

beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(() => world?.stop())

async function whileStale<T>(work: () => Promise<T>): Promise<T> {
  const { db } = world.database
  await db.run(sql`update auth."session" set "createdAt" = "createdAt" - interval '11 minutes'`)
  return work().finally(() => db.run(sql`update auth."session" set "createdAt" = "createdAt" + interval '11 minutes'`))
}

test('a session that is not fresh invites viewers only, raises no role and gives nobody the live environment', async () => {
  const viewer = await invite(world, { owner, organisationId: org.id, email: 'viewer@example.com', role: 'viewer' })
  const admin = await invite(world, { owner, organisationId: org.id, email: 'second@example.com', role: 'admin' })
  const idOf = async (person: Browser) => String((await person.call('GET', '/account')).body.id)
  const [viewerId, adminId] = [await idOf(viewer), await idOf(admin)]
  const byKey = await world.call(org.testKey, 'POST', members, { email: 'test-only@example.com', role: 'member' })
  const { accountId: testOnly } = z.object({ accountId: z.string() }).parse(byKey.body)
  await whileStale(async () => {
    for (const role of ['member', 'admin'])
      expect(codeOf(await owner.call('POST', members, { email: `${role}@example.com`, role }))).toBe(
        'fresh-authentication-required',
      )
    expect(codeOf(await owner.call('PATCH', `${members}/${viewerId}`, { role: 'member' }))).toBe(
      'fresh-authentication-required',
    )
    expect(codeOf(await owner.call('PATCH', `${members}/${testOnly}`, { role: 'member' }))).toBe(
      'fresh-authentication-required',
    )
    expect((await owner.call('POST', members, { email: 'reader@example.com', role: 'viewer' })).status).toBe(201)
    expect((await owner.call('PATCH', `${members}/${adminId}`, { role: 'member' })).status).toBe(200)
  })
  expect((await owner.call('PATCH', `${members}/${viewerId}`, { role: 'member' })).status).toBe(200)
})

test.each(['admin', 'owner'])(
  'an API key accepts no invitation to be an %s for the account that made it',
  async (role) => {
    const other = await world.organisation()
    const email = await ownerOf(world, other.id)
    const invited = await owner.call('POST', members, { email, role })
    expect(invited.status).toBe(201)
    const accept = `/account/invitations/${org.id}/accept`
    expect(codeOf(await world.call(other.testKey, 'POST', accept))).toBe('role-not-allowed')
    const person = await aBrowser(world, { email })
    expect((await person.call('POST', accept, undefined, outside)).status).toBe(204)
  },
)
