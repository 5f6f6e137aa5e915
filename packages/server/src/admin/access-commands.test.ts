import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../test/world.ts'
import { runAdmin } from './run.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const Made = z.object({
  organisation: z.object({ id: z.string() }),
  apiKeys: z.array(z.object({ id: z.string(), key: z.string() })),
})

function admin(...args: string[]) {
  return runAdmin(['admin', ...args], { DATABASE_URL: world.database.url })
}

async function anOrganisation(name: string, email: string) {
  const { stdout } = await admin('create-organisation', '--name', name, '--email', email, '--format', 'json')
  const { organisation, apiKeys } = Made.parse(JSON.parse(stdout))
  const [test, live] = apiKeys
  if (test === undefined || live === undefined) throw new Error('keys are missing')
  return { id: organisation.id, test, live }
}

const statusOf = async (key: string) => (await world.call(key, 'GET', '/organisations/current')).status

test('list-organisations finds one by a part of its name, by the address of its owner and by its id', async () => {
  const acme = await anOrganisation('Acme \u001b[31mRed', 'ann@acme.example')
  const other = await anOrganisation('Birch 100%', 'bob@birch.example')
  for (const find of ['acme', 'ANN@acme', acme.id]) {
    const { exitCode, stdout } = await admin('list-organisations', '--find', find)
    expect([exitCode, stdout.split('\n').length]).toEqual([0, 2])
    expect(stdout).toMatch(new RegExp(`^${acme.id}  20\\d\\d-.*  hobby +2 keys +ann@acme\\.example  Acme`))
    expect(stdout).toContain('\\u001b[31mRed')
  }
  const all = await admin('list-organisations', '--format', 'json')
  const ids = z.array(z.object({ id: z.string() })).parse(JSON.parse(all.stdout))
  expect(ids.map(({ id }) => id)).toEqual([other.id, acme.id])
  expect((await admin('list-organisations', '--limit', '1')).stdout).toContain(other.id)
  expect((await admin('list-organisations', '--find', '%')).stdout).not.toContain(acme.id)
  expect((await admin('list-organisations', '--find', 'nobody')).stdout).toBe('no organisation\n')
})

test('a line break in the name of an organisation or of a key makes no line of a list', async () => {
  const forged = 'Acme\norg_1  2026-01-01  pro         3 keys   a@b.example  Victim Ltd'
  const { id, test } = await anOrganisation(forged, 'f@forged.example')
  const made = await world.call(test.key, 'POST', '/organisations/current/api-keys', {
    name: forged,
    environment: 'test',
  })
  expect(made.status).toBe(201)
  const organisations = await admin('list-organisations', '--find', id)
  expect(organisations.stdout.split('\n')).toHaveLength(2)
  expect(organisations.stdout).toContain('Acme\\u000aorg_1')
  const keys = await admin('list-keys', '--organisation', id)
  expect(keys.stdout.split('\n')).toHaveLength(4)
})

test('list-keys shows the state of each key and no key; revoke-key ends one at once, and with --cascade what it made', async () => {
  const { id, test, live } = await anOrganisation('Cedar', 'cy@cedar.example')
  const path = '/organisations/current/api-keys'
  const made = await world.call(test.key, 'POST', path, { name: 'of the test key', environment: 'test' })
  expect(made.status).toBe(201)
  const kept = await admin('revoke-key', '--key', test.id)
  expect(kept.stdout).toContain(`${test.id} is revoked\n`)
  expect(kept.stdout).toContain(`${made.body.id} was made by it and is still valid  of the test key`)
  expect([await statusOf(test.key), await statusOf(String(made.body.key))]).toEqual([401, 200])
  const all = await admin('revoke-key', '--key', test.id, '--cascade', 'yes')
  expect(all.stdout).toContain(`${made.body.id} is revoked  of the test key`)
  expect([await statusOf(String(made.body.key)), await statusOf(live.key)]).toEqual([401, 200])
  const { stdout } = await admin('list-keys', '--organisation', id)
  expect(stdout).toMatch(new RegExp(`^${String(made.body.id)}  test  ….{4}  revoked 20`))
  expect(stdout).toMatch(new RegExp(`${live.id}  live  ….{4}  valid +`))
  for (const { key } of [test, live]) expect(stdout).not.toContain(key)
})

test('revoke-all-keys ends every key of one organisation, writes each into its audit log, and touches no other', async () => {
  const [gone, other] = [await anOrganisation('Gone', 'g@gone.example'), await anOrganisation('Elm', 'e@elm.example')]
  const { stdout } = await admin('revoke-all-keys', '--organisation', gone.id)
  for (const { id } of [gone.test, gone.live]) expect(stdout).toContain(`${id} is revoked`)
  expect([await statusOf(gone.test.key), await statusOf(gone.live.key), await statusOf(other.live.key)]).toEqual([
    401, 401, 200,
  ])
  expect((await admin('revoke-all-keys', '--organisation', gone.id)).stdout).toBe('no key was valid\n')
  const log = await admin('verify-audit-log', '--organisation', gone.id)
  expect(log.stdout).toContain('intact, 5 records')
})

test.each([
  [['list-keys', '--organisation', 'org_01h455vb4pex5vsknk084sn02q'], 1, 'No such organisation.'],
  [['revoke-all-keys', '--organisation', 'org_01h455vb4pex5vsknk084sn02q'], 1, 'No such organisation.'],
  [['revoke-key', '--key', 'key_01h455vb4pex5vsknk084sn02q'], 1, 'No such'],
  [['revoke-key', '--key', 'svc_test_sk_x'], 2, '--key'],
  [['list-organisations', '--limit', '0'], 2, '--limit'],
])('%j is refused with a message', async (args, code, message) => {
  const { exitCode, stdout, stderr } = await admin(...args)
  expect([exitCode, stdout]).toEqual([code, ''])
  expect(stderr).toContain(message)
})
