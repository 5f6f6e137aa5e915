import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aBrowser, type Browser, ownerOf as emailOfOwner, invite } from '../../../test/people.ts'
import { type Answer, aWorld, codeOf, countByStatus, type Org, type World } from '../../../test/world.ts'
import { sql } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const path = '/organisations/current/members'

function anEmail(): string {
  return `${randomBytes(6).toString('hex')}@example.com`
}

function add(org: Org, body: unknown): Promise<Answer> {
  return world.call(org.testKey, 'POST', path, body)
}

async function ownerOf(org: Org): Promise<string> {
  const members = await world.call(org.testKey, 'GET', path)
  return String(members.list.find((member) => member.role === 'owner')?.accountId)
}

test('an unknown e-mail address gets an account and an invited member', async () => {
  const org = await world.organisation()
  const email = anEmail()
  const added = await add(org, { email, role: 'viewer' })
  expect(added.status).toBe(201)
  expect(Object.keys(added.body).sort()).toEqual(['accountId', 'createdAt', 'email', 'environments', 'role', 'status'])
  expect(added.body).toMatchObject({
    accountId: expect.stringMatching(/^acc_/),
    email,
    role: 'viewer',
    status: 'invited',
  })
})

test('an invitation by address shows nothing of the account until it is accepted, and nothing if it is declined', async () => {
  const org = await world.organisation()
  const owner = await browserOfOwner(org)
  const people = await Promise.all(
    [anEmail(), anEmail()].map((email) => invite(world, { owner, organisationId: org.id, email, role: 'viewer' })),
  )
  const known = await Promise.all(people.map(async (person) => (await person.call('GET', '/account')).body))
  const [asking, log] = [await world.organisation(), '/organisations/current/audit-log']
  const before = newId('acc', world.server.deps).slice(0, 13)
  const added = await Promise.all(
    [...known.map(({ email }) => email), anEmail()].map((email) => add(asking, { email, role: 'viewer' })),
  )
  const ids = added.map(({ body }) => String(body.accountId))
  for (const id of ids) expect(id >= before, 'its time is that of the invitation').toBe(true)
  expect(new Set([...ids, ...known.map(({ id }) => id)]).size).toBe(5)
  const change = await world.call(asking.testKey, 'PATCH', `${path}/${ids[0]}`, { role: 'member' })
  expect(change.body).toMatchObject({ accountId: ids[0], role: 'member', status: 'invited' })
  expect((await world.call(asking.testKey, 'DELETE', `${path}/${known[0]?.id}`)).status).toBe(404)
  const listed = async () => (await world.call(asking.testKey, 'GET', path)).list.map(({ accountId }) => accountId)
  expect((await listed()).filter((id) => ids.includes(String(id)))).toHaveLength(3)
  expect((await people[1]?.call('POST', `/account/invitations/${asking.id}/decline`))?.status).toBe(204)
  const records = JSON.stringify((await world.call(asking.testKey, 'GET', log)).list)
  for (const { id } of known) expect(records).not.toContain(id)
  const events = await world.database.db.many(
    z.object({ payload: z.string() }),
    sql`select payload::text from events where organisation_id = ${asking.id} and type = 'member.invited'`,
  )
  for (const { id } of known) expect(JSON.stringify(events)).not.toContain(id)
  expect((await people[0]?.call('POST', `/account/invitations/${asking.id}/accept`))?.status).toBe(204)
  expect(await listed()).toContain(known[0]?.id)
  expect((await world.call(asking.testKey, 'DELETE', `${path}/${ids[0]}`)).status).toBe(204)
  expect((await world.call(asking.testKey, 'DELETE', `${path}/${ids[2]}`)).status).toBe(204)
  expect(await listed()).toEqual([await ownerOf(asking)])
})

test('a known account is invited by its id or by its address in any letter case, and is one account', async () => {
  const [org, other, third] = [await world.organisation(), await world.organisation(), await world.organisation()]
  const accountId = await ownerOf(other)
  const email = String((await world.call(other.testKey, 'GET', '/account')).body.email)
  const byId = await add(org, { accountId, role: 'member' })
  expect(byId.body).toMatchObject({ accountId, email: null, role: 'member', status: 'invited' })
  const byEmail = await add(third, { email: email.toUpperCase(), role: 'viewer' })
  expect(byEmail.body).toMatchObject({ email: email.toUpperCase(), status: 'invited' })
  expect((await world.call(other.testKey, 'POST', `/account/invitations/${third.id}/accept`)).status).toBe(204)
  expect((await world.call(third.testKey, 'GET', path)).list).toContainEqual(
    expect.objectContaining({ accountId, email: email.toLowerCase(), status: 'active' }),
  )
})

test('a member is not added twice, also in parallel', async () => {
  const org = await world.organisation()
  const body = { email: anEmail(), role: 'member' }
  const answers = await Promise.all(Array.from({ length: 6 }, () => add(org, body)))
  expect(countByStatus(answers)).toEqual({ 201: 1, 409: 5 })
  expect(codeOf(await add(org, body))).toBe('already-a-member')
})

test('an organisation has at most 100 open invitations, also of parallel requests', async () => {
  const org = await world.organisation()
  const answers = await Promise.all(Array.from({ length: 105 }, () => add(org, { email: anEmail(), role: 'viewer' })))
  expect(countByStatus(answers)).toEqual({ 201: 100, 409: 5 })
  expect(codeOf(await add(org, { email: anEmail(), role: 'viewer' }))).toBe('invitation-limit-reached')
  const invited = answers.find(({ status }) => status === 201)?.body.accountId
  expect((await world.call(org.testKey, 'DELETE', `${path}/${invited}`)).status).toBe(204)
  expect((await add(org, { email: anEmail(), role: 'viewer' })).status).toBe(201)
})

test('a body that names nobody or two is 422', async () => {
  const org = await world.organisation()
  const unknown = 'acc_01h455vb4pex5vsknk084sn02q'
  const faulty = [
    { role: 'member' },
    { accountId: unknown, email: anEmail(), role: 'member' },
    { accountId: unknown, role: 'god' },
    { email: 'nobody', role: 'member' },
  ]
  for (const body of faulty) expect((await add(org, body)).status).toBe(422)
})

test('members are listed from the latest to the first, a page at a time', async () => {
  const org = await world.organisation()
  const added: unknown[] = []
  for (const role of ['member', 'viewer', 'member'])
    added.push((await add(org, { email: anEmail(), role })).body.accountId)
  const first = await world.call(org.testKey, 'GET', `${path}?limit=2`)
  const next = /^<([^>]+)>; rel="next"$/.exec(first.headers.get('link') ?? '')?.[1]
  const second = await world.call(org.testKey, 'GET', String(next))
  expect(second.headers.get('link')).toBeNull()
  const listed = [...first.list, ...second.list].map((member) => member.accountId)
  expect(listed).toEqual([...added.reverse(), await ownerOf(org)])
})

test('cursors that are not of this list are 422, never 500', async () => {
  const org = await world.organisation()
  const strange = ['key_01h455vb4pex5vsknk084sn02q', '9999999999999999999'].map((key) =>
    Buffer.from(key).toString('base64url'),
  )
  for (const cursor of [...strange, 'x', '']) {
    for (const list of [path, '/organisations/current/audit-log']) {
      expect((await world.call(org.testKey, 'GET', `${list}?cursor=${cursor}`)).status).toBe(422)
    }
  }
})

test('a role is changed by PATCH, and PATCH and DELETE of a non-member are 404', async () => {
  const [org, other] = [await world.organisation(), await world.organisation()]
  const { accountId } = (await add(org, { email: anEmail(), role: 'member' })).body
  const changed = await world.call(org.testKey, 'PATCH', `${path}/${accountId}`, { role: 'viewer' })
  expect(changed.body).toMatchObject({ accountId, role: 'viewer' })
  for (const stranger of [await ownerOf(other), 'acc_01h455vb4pex5vsknk084sn02q', 'nobody']) {
    const patched = await world.call(org.testKey, 'PATCH', `${path}/${stranger}`, { role: 'admin' })
    const deleted = await world.call(org.testKey, 'DELETE', `${path}/${stranger}`)
    expect([patched.status, codeOf(patched), deleted.status, codeOf(deleted)]).toEqual([
      404,
      'member-not-found',
      404,
      'member-not-found',
    ])
  }
})

test('a removed member is gone and can be added again', async () => {
  const org = await world.organisation()
  const { accountId } = (await add(org, { email: anEmail(), role: 'member' })).body
  const removed = await world.call(org.testKey, 'DELETE', `${path}/${accountId}`)
  expect([removed.status, removed.body]).toEqual([204, {}])
  expect((await world.call(org.testKey, 'DELETE', `${path}/${accountId}`)).status).toBe(404)
  expect((await add(org, { accountId, role: 'viewer' })).status).toBe(201)
})

test('the last owner can be neither removed nor demoted', async () => {
  const org = await world.organisation()
  const [owner, person] = [await ownerOf(org), await browserOfOwner(org)]
  const removed = await person.call('DELETE', `${path}/${owner}`)
  const demoted = await person.call('PATCH', `${path}/${owner}`, { role: 'admin' })
  expect([removed.status, codeOf(removed), demoted.status, codeOf(demoted)]).toEqual([
    409,
    'last-owner',
    409,
    'last-owner',
  ])
  expect((await person.call('PATCH', `${path}/${owner}`, { role: 'owner' })).status).toBe(200)
})

test('an owner who was only invited does not let the last owner leave', async () => {
  const org = await world.organisation()
  const [owner, person] = [await ownerOf(org), await browserOfOwner(org)]
  expect((await person.call('POST', path, { email: anEmail(), role: 'owner' })).status).toBe(201)
  expect(codeOf(await person.call('DELETE', `${path}/${owner}`))).toBe('last-owner')
})

test.each(Array.from({ length: 5 }, (_, round) => round))(
  'of two owners who leave at the same time one stays (round %i)',
  async () => {
    const org = await world.organisation()
    const [first, person] = [await ownerOf(org), await browserOfOwner(org)]
    const other = await invite(world, { owner: person, organisationId: org.id, email: anEmail(), role: 'owner' })
    const second = (await other.call('GET', '/account')).body.id
    const answers = await Promise.all([
      person.call('DELETE', `${path}/${first}`),
      other.call('PATCH', `${path}/${second}`, { role: 'viewer' }),
    ])
    expect(answers.filter((response) => response.status === 409).map(codeOf)).toEqual(['last-owner'])
    const members = await world.call(org.testKey, 'GET', path)
    expect(members.list.filter((member) => member.role === 'owner')).toHaveLength(1)
  },
)

test.each([
  ['removed', 'DELETE', undefined, []],
  ['made a viewer', 'PATCH', { role: 'viewer' }, ['viewer']],
  ['made a member', 'PATCH', { role: 'member' }, ['member', 'viewer']],
])(
  'invitations of an admin who is %s end, with an audit record, where they give more',
  async (_, method, body, left) => {
    const org = await world.organisation()
    const owner = await browserOfOwner(org)
    const admin = await invite(world, { owner, organisationId: org.id, email: anEmail(), role: 'admin' })
    const { id } = (await admin.call('GET', '/account')).body
    const invited = new Map<unknown, string>()
    for (const role of ['admin', 'member', 'viewer'])
      invited.set((await admin.call('POST', path, { email: anEmail(), role })).body.accountId, role)
    const kept = (await owner.call('POST', path, { email: anEmail(), role: 'admin' })).body.accountId
    await owner.call(method, `${path}/${id}`, body)
    const members = (await owner.call('GET', path)).list.map(({ accountId }) => accountId)
    expect(members).toContain(kept)
    const remaining = members.flatMap((account) => invited.get(account) ?? [])
    expect(remaining.toSorted()).toEqual(left)
    const ended = [...invited].filter(([, role]) => !left.some((one) => one === role)).map(([account]) => account)
    const log = await owner.call('GET', '/organisations/current/audit-log?action=organisations.members.remove')
    expect(log.list.map(({ target }) => target)).toEqual(expect.arrayContaining(ended))
  },
)

test('an invitation from before invitations named an account ends with the first admin who is removed, not with a member', async () => {
  const org = await world.organisation()
  const owner = await browserOfOwner(org)
  const [admin, member] = [
    await invite(world, { owner, organisationId: org.id, email: anEmail(), role: 'admin' }),
    await invite(world, { owner, organisationId: org.id, email: anEmail(), role: 'member' }),
  ]
  const invited = (await admin.call('POST', path, { email: anEmail(), role: 'admin' })).body.accountId
  await world.database.db.run(sql`
    update members set invited_by = null where organisation_id = ${org.id} and invited_as = ${String(invited)}`)
  const isInvitedWithout = async (gone: Browser) => {
    await owner.call('DELETE', `${path}/${(await gone.call('GET', '/account')).body.id}`)
    return (await owner.call('GET', path)).list.some(({ accountId }) => accountId === invited)
  }
  expect([await isInvitedWithout(member), await isInvitedWithout(admin)]).toEqual([true, false])
})

test('an owner invitation from before invitations named an account stays when an admin gets the live environment', async () => {
  const org = await world.organisation()
  const owner = await browserOfOwner(org)
  const invited = (await owner.call('POST', path, { email: anEmail(), role: 'owner' })).body.accountId
  const admin = (await owner.call('POST', path, { email: anEmail(), role: 'admin' })).body.accountId
  await world.database.db.run(sql`
    update members set invited_by = null, is_live = is_live and account_id <> ${String(admin)} where organisation_id = ${org.id} and accepted_at is null`)
  expect((await owner.call('PATCH', `${path}/${admin}`, { role: 'admin' })).status).toBe(200)
  expect((await owner.call('GET', path)).list.map(({ accountId }) => accountId)).toContain(invited)
})

const keysPath = '/organisations/current/api-keys'
const keyOf = async (by: Browser) => (await by.call('GET', keysPath)).list[0]?.id
const newKey = { name: 'Late', environment: 'test' }

test.each<[string, (admin: Browser, viewer: unknown) => Promise<Answer>]>([
  ['adds a member', (admin) => admin.call('POST', path, { email: anEmail(), role: 'admin' })],
  ['changes a role', (admin, viewer) => admin.call('PATCH', `${path}/${viewer}`, { role: 'admin' })],
  ['removes a member', (admin, viewer) => admin.call('DELETE', `${path}/${viewer}`)],
  ['creates a key', (admin) => admin.call('POST', keysPath, newKey)],
  ['revokes a key', async (admin) => admin.call('DELETE', `${keysPath}/${await keyOf(admin)}`)],
  ['renames the organisation', (admin) => admin.call('PATCH', '/organisations/current', { name: 'Late' })],
])('an admin who is removed, or removed and invited again, while a call of theirs %s gets 403', async (_, act) => {
  const org = await world.organisation()
  const owner = await browserOfOwner(org)
  const viewer = (await add(org, { email: anEmail(), role: 'viewer' })).body.accountId
  for (const change of [sql`delete from members`, sql`update members set accepted_at = null`]) {
    const admin = await invite(world, { owner, organisationId: org.id, email: anEmail(), role: 'admin' })
    const { id } = (await admin.call('GET', '/account')).body
    const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    const acting = await world.database.db.tx(async (tx) => {
      await tx.run(sql`select from organisations where id = ${org.id} for no key update`)
      const calls = [act(admin, viewer)]
      await expect.poll(() => world.database.db.run(waiting)).toBe(1)
      await tx.run(sql`${change} where organisation_id = ${org.id} and account_id = ${String(id)}`)
      return calls
    })
    const refused = await acting[0]
    expect([refused?.status, refused && codeOf(refused)]).toEqual([403, 'role-not-allowed'])
  }
})

async function browserOfOwner(org: Org): Promise<Browser> {
  return aBrowser(world, { email: await emailOfOwner(world, org.id), organisationId: org.id })
}
