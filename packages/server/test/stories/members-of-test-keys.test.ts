import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { listEndedRequesters } from '../../src/features/callers/index.ts'
import { id } from '../../src/platform/ids.ts'
import { aBrowser, type Browser, ownerOf } from '../people.ts'
import { aWorld, codeOf, type Org, unreachableMain, type World } from '../world.ts'

// Decision 0167: through the people that it invites, a key reaches nothing that it does not reach itself.

let world: World
let org: Org
let owner: Browser
const members = '/organisations/current/members'
const live = { 'x-service-environment': 'live' }

beforeAll(async () => {
  world = await aWorld({ rpcUrls: unreachableMain })
  org = await world.organisation()
  owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
})
afterAll(() => world?.stop())

let made = 0

/** A person whom this key invited, and who accepted. */
async function invitedBy(key: string, role = 'member') {
  const email = `guest-${made++}@example.com`
  const invited = await world.call(key, 'POST', members, { email, role })
  expect([invited.status, codeOf(invited)]).toEqual([201, ''])
  const browser = await aBrowser(world, { email, organisationId: org.id })
  const outside = { 'x-service-organisation': undefined }
  expect((await browser.call('POST', `/account/invitations/${org.id}/accept`, undefined, outside)).status).toBe(204)
  return { browser, accountId: String((await browser.call('GET', '/account')).body.id) }
}

/** Where a person works, as the list of members says. */
const environmentsOf = async (accountId: string) =>
  (await world.call(org.testKey, 'GET', members)).list.find((member) => member.accountId === accountId)?.environments

const wallet = { chain: 'base', supportedTokens: ['USDC'] }
const makes = async ({ browser }: { browser: Browser }, headers = {}) => {
  const response = await browser.call('POST', '/wallet-infra/master-wallets', wallet, headers)
  return response.status === 201 ? 'made' : codeOf(response)
}
const reads = async ({ browser }: { browser: Browser }, headers = {}) => {
  const response = await browser.call('GET', '/wallet-infra/master-wallets', undefined, headers)
  return response.status === 200 ? 'read' : codeOf(response)
}

test('a person whom a test key invited works in the test environment alone, until an owner gives them a role', async () => {
  const guest = await invitedBy(org.testKey)
  expect([await makes(guest), await reads(guest)]).toEqual(['made', 'read'])
  expect([await makes(guest, live), await reads(guest, live)]).toEqual(['role-not-allowed', 'role-not-allowed'])
  const path = `${members}/${guest.accountId}`
  expect((await world.call(org.testKey, 'PATCH', path, { role: 'viewer' })).status).toBe(200)
  expect((await world.call(org.testKey, 'PATCH', path, { role: 'member' })).status).toBe(200)
  expect([await reads(guest, live), await environmentsOf(guest.accountId)]).toEqual(['role-not-allowed', ['test']])
  const granted = await owner.call('PATCH', path, { role: 'member' })
  expect([granted.status, granted.body.environments]).toEqual([200, ['test', 'live']])
  expect(await environmentsOf(guest.accountId)).toEqual(['test', 'live'])
  expect([await makes(guest, live), await reads(guest, live)]).toEqual(['made', 'read'])
})

test('a test key neither raises, lowers nor removes who reaches the live environment, and removes those of the test environment', async () => {
  const guest = await invitedBy(org.liveKey, 'viewer')
  expect([await reads(guest, live), await makes(guest, live)]).toEqual(['read', 'role-not-allowed'])
  const path = `${members}/${guest.accountId}`
  const byTestKey = async (method: string, at: string, body?: object) => {
    const response = await world.call(org.testKey, method, at, body)
    return [response.status, codeOf(response)]
  }
  const refused = [403, 'role-not-allowed']
  expect(await byTestKey('PATCH', path, { role: 'member' })).toEqual(refused)
  expect((await world.call(org.liveKey, 'PATCH', path, { role: 'member' })).status).toBe(200)
  expect(await byTestKey('PATCH', path, { role: 'viewer' })).toEqual(refused)
  expect(await byTestKey('DELETE', path)).toEqual(refused)
  expect(await makes(guest, live)).toBe('made')
  const late = await world.call(org.liveKey, 'POST', members, { email: `invited-${made++}@example.com` })
  expect(await byTestKey('DELETE', `${members}/${late.body.accountId}`)).toEqual(refused)
  const own = await invitedBy(org.testKey)
  expect(await byTestKey('DELETE', `${members}/${own.accountId}`)).toEqual([204, ''])
  expect((await world.call(org.liveKey, 'DELETE', path)).status).toBe(204)
})

test('a key that is limited to scopes invites nobody who may do more, and raises nobody to that', async () => {
  const aKey = async (scopes: readonly string[]) =>
    String(
      (
        await world.call(org.liveKey, 'POST', '/organisations/current/api-keys', {
          name: 'a',
          environment: 'live',
          scopes,
        })
      ).body.key,
    )
  const [team, reading] = [await aKey(['organisation']), await aKey(['organisation', 'read'])]
  const invite = async (key: string, role: string) => {
    const response = await world.call(key, 'POST', members, { email: `limited-${made++}@example.com`, role })
    return [response.status, codeOf(response)]
  }
  expect(await invite(team, 'member')).toEqual([403, 'role-not-allowed'])
  expect(await invite(team, 'viewer')).toEqual([403, 'role-not-allowed'])
  expect(await invite(reading, 'member')).toEqual([403, 'role-not-allowed'])
  expect(await invite(reading, 'viewer')).toEqual([201, ''])
  const guest = await invitedBy(org.liveKey, 'viewer')
  const raised = await world.call(reading, 'PATCH', `${members}/${guest.accountId}`, { role: 'member' })
  expect([raised.status, codeOf(raised)]).toEqual([403, 'role-not-allowed'])
})

test('an invitation that nobody has accepted ends with the key that made it, and one that was accepted stays', async () => {
  const body = { name: 'leaked', environment: 'live' }
  const leaked = (await world.call(org.liveKey, 'POST', '/organisations/current/api-keys', body)).body
  const accepted = await invitedBy(String(leaked.key))
  const email = `late-${made++}@example.com`
  expect((await world.call(String(leaked.key), 'POST', members, { email })).status).toBe(201)
  const late = await aBrowser(world, { email, organisationId: org.id })
  const outside = { 'x-service-organisation': undefined }
  const invitations = async () => (await late.call('GET', '/account', undefined, outside)).body.invitations
  expect(await invitations()).toHaveLength(1)
  expect((await world.call(org.liveKey, 'DELETE', `/organisations/current/api-keys/${leaked.id}`)).status).toBe(204)
  expect(await invitations()).toEqual([])
  const accept = () => late.call('POST', `/account/invitations/${org.id}/accept`, undefined, outside)
  expect(codeOf(await accept())).toBe('invitation-not-found')
  expect(await reads(accepted)).toBe('read')
  expect((await owner.call('POST', members, { email, role: 'viewer' })).status).toBe(201)
  expect((await accept()).status).toBe(204)
})

test('who returns by a test key gets back nothing that they had in the live environment: no token, no link and no request', async () => {
  const guest = await invitedBy(org.liveKey)
  const made = await guest.browser.call('POST', '/vaults', {}, live)
  expect([made.status, codeOf(made)]).toEqual([201, ''])
  const vault = `/vaults/${made.body.id}`
  const token = String((await guest.browser.call('POST', `${vault}/tokens`, {}, live)).body.token)
  const form = new FormData()
  form.set('file', new Blob(['secret']), 'a.txt')
  const added = await fetch(`${world.base}${vault}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${org.liveKey}` },
    body: form,
  })
  expect(added.status).toBe(201)
  const [file] = z
    .array(z.object({ url: z.string() }))
    .parse((await guest.browser.call('GET', vault, undefined, live)).body.files)
  const link = new URL(file?.url ?? '')
  const opened = async () => [
    (await fetch(world.base + vault, { headers: { authorization: `Bearer ${token}` } })).status,
    (await fetch(world.base + link.pathname + link.search)).status,
  ]
  expect(await opened()).toEqual([200, 200])
  const path = `${members}/${guest.accountId}`
  expect((await world.call(org.liveKey, 'DELETE', path)).status).toBe(204)
  expect(await opened()).toEqual([401, 401])
  const invited = await world.call(org.testKey, 'POST', members, { accountId: guest.accountId, role: 'member' })
  expect([invited.status, codeOf(invited)]).toEqual([201, ''])
  const outside = { 'x-service-organisation': undefined }
  expect((await guest.browser.call('POST', `/account/invitations/${org.id}/accept`, undefined, outside)).status).toBe(
    204,
  )
  expect(await makes(guest)).toBe('made')
  expect(await opened()).toEqual([401, 401])
  const tenant = { organisationId: org.id, environment: 'live' } as const
  const accountId = id('acc').parse(guest.accountId)
  const endedIn = async (environment: 'test' | 'live') => {
    const requesters = [{ id: accountId, sessionId: null }]
    const ended = await world.database.db.tx((tx) => listEndedRequesters(tx, { ...tenant, environment }, requesters))
    return ended.map((one) => one.id)
  }
  expect([await endedIn('live'), await endedIn('test')]).toEqual([[accountId], []])
})
