import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { aWorld, type World } from '../../test/world.ts'
import { sql } from '../platform/db/db.ts'
import { runAdmin } from './run.ts'

let world: World

beforeAll(async () => {
  world = await aWorld()
})
afterAll(() => world.stop())

const Made = z.object({
  organisation: z.object({ id: z.string(), name: z.string(), type: z.string(), plan: z.string() }),
  owner: z.object({ id: z.string(), email: z.string() }),
  apiKeys: z.array(z.object({ key: z.string(), environment: z.string() })),
})

function admin(args: readonly string[], env: Record<string, string> = {}) {
  return runAdmin(['admin', ...args], { DATABASE_URL: world.database.url, ...env })
}

async function create(options: readonly string[] = [], env: Record<string, string> = {}) {
  const email = `${randomBytes(6).toString('hex')}@example.com`
  const args = ['create-organisation', '--name', 'Acme', '--email', email, '--format', 'json', ...options]
  const { exitCode, stdout } = await admin(args, env)
  expect(exitCode).toBe(0)
  return { email, ...Made.parse(JSON.parse(stdout)) }
}

test('create-organisation makes an owner and a working key for each environment that the deployment serves', async () => {
  const made = await create(['--type', 'enterprise', '--plan', 'pro'])
  expect(made.organisation).toMatchObject({ name: 'Acme', type: 'enterprise', plan: 'pro' })
  expect(made.apiKeys.map((key) => key.environment)).toEqual(['test', 'live'])
  for (const { key } of made.apiKeys) {
    expect((await world.call(key, 'GET', '/organisations/current')).body.id).toBe(made.organisation.id)
    expect((await world.call(key, 'GET', '/account')).body).toMatchObject({ id: made.owner.id, email: made.email })
  }
  const testOnly = await create([], { ENVIRONMENTS: 'test' })
  expect(testOnly.apiKeys.map((key) => key.environment)).toEqual(['test'])
  expect(testOnly.organisation.plan).toBe('hobby')
})

test('the text form shows ids and keys to a person', async () => {
  const { exitCode, stdout } = await admin(['create-organisation', '--name', 'Acme', '--email', 'text@example.com'])
  expect(exitCode).toBe(0)
  const lines = stdout.split('\n')
  expect(lines[0]).toMatch(/^organisation +org_\w+ +Acme \(team, hobby plan\)$/)
  expect(lines[1]).toMatch(/^owner +acc_\w+ +text@example\.com$/)
  expect(lines[2]).toMatch(/^test key +svc_test_sk_\w+/)
  expect(lines[3]).toMatch(/^live key +svc_live_sk_\w+/)
})

test('one e-mail address is one account in every organisation that it owns', async () => {
  const first = await create()
  const { stdout } = await admin([
    'create-organisation',
    '--name',
    'B',
    '--email',
    first.email.toUpperCase(),
    '--format',
    'json',
  ])
  expect(Made.parse(JSON.parse(stdout)).owner).toMatchObject({ id: first.owner.id, email: first.email })
})

test('create-key makes the first live key in the name of the first owner, unless live is not served', async () => {
  const made = await create([], { ENVIRONMENTS: 'test' })
  const args = ['create-key', '--organisation', made.organisation.id, '--environment', 'live', '--name', 'Production']
  const refused = await admin(args, { ENVIRONMENTS: 'test' })
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining('does not serve live')])
  const key = /svc_live_sk_\w+/.exec((await admin(args)).stdout)?.[0] ?? ''
  expect((await world.call(key, 'GET', '/account')).body.id).toBe(made.owner.id)
})

test('set-plan applies from the next request', async () => {
  const made = await create()
  const done = await admin(['set-plan', '--organisation', made.organisation.id, '--plan', 'enterprise'])
  expect(done.exitCode).toBe(0)
  const plan = await world.call(made.apiKeys[0]?.key ?? '', 'GET', '/billing/plan')
  expect(plan.body.plan).toBe('enterprise')
})

test('operator actions are in the organisation’s audit log', async () => {
  const made = await create()
  await admin(['set-plan', '--organisation', made.organisation.id, '--plan', 'pro'])
  await admin(['create-key', '--organisation', made.organisation.id, '--environment', 'live', '--name', 'k'])
  const { list } = await world.call(made.apiKeys[1]?.key ?? '', 'GET', '/organisations/current/audit-log')
  expect(list.map((record) => record.action)).toEqual([
    'organisations.apiKeys.create',
    'organisations.setPlan',
    'organisations.apiKeys.create',
    'organisations.apiKeys.create',
    'organisations.create',
  ])
  expect(list.every((record) => JSON.stringify(record.actor) === '{"kind":"operator"}')).toBe(true)
  expect(list[1]).toMatchObject({ details: { from: 'hobby', to: 'pro' } })
})

test('verify-audit-log reports which log is broken and where, and exits with 1', async () => {
  const [whole, broken] = [await create(), await create()]
  await world.database.db.run(
    sql`update audit_log set details = '{}' where organisation_id = ${broken.organisation.id} and sequence = 2`,
  )
  const one = await admin(['verify-audit-log', '--organisation', whole.organisation.id])
  expect([one.exitCode, one.stdout]).toEqual([0, `${whole.organisation.id}  intact, 3 records\n`])
  const all = await admin(['verify-audit-log'])
  expect(all.exitCode).toBe(1)
  expect(all.stderr).toContain(`${broken.organisation.id}  BROKEN at record 2`)
  expect(all.stderr).toContain(`${whole.organisation.id}  intact`)
  const unknown = await admin(['verify-audit-log', '--organisation', 'org_01h455vb4pex5vsknk084sn02q'])
  expect(unknown.exitCode).toBe(1)
})

test.each([
  [['create-organisation', '--name', 'x'], '--email'],
  [['create-organisation', '--name', 'x', '--email', 'nobody'], '--email'],
  [['create-organisation', '--name', 'x', '--email', 'a@b.example', '--plan', 'gold'], '--plan'],
  [['create-organisation', '--title', 'x'], '--title'],
  [['create-key', '--organisation', '7', '--environment', 'live', '--name', 'k'], '--organisation'],
  [['set-plan', '--organisation', 'org_01h455vb4pex5vsknk084sn02q', '--plan', 'pro', '--format', 'xml'], '--format'],
  [['destroy'], 'There is no command destroy.'],
  [['set-plan', 'pro'], 'purser admin set-plan takes no argument.'],
])('%j is refused with a message that names the fault, and exits with 2', async (args, complaint) => {
  const { exitCode, stdout, stderr } = await admin(args)
  expect([exitCode, stdout]).toEqual([2, ''])
  expect(stderr).toContain(complaint)
})

test('an unknown organisation exits with 1, a missing option and a missing database address with 2', async () => {
  const unknown = await admin(['set-plan', '--organisation', 'org_01h455vb4pex5vsknk084sn02q', '--plan', 'pro'])
  expect([unknown.exitCode, unknown.stderr]).toEqual([1, 'No such organisation.\n'])
  const unnamed = await admin(['list-keys'])
  expect([unnamed.exitCode, unnamed.stderr]).toEqual([2, expect.stringMatching(/^--organisation: is missing\n/)])
  const without = await runAdmin(['admin', 'verify-audit-log'], {})
  expect([without.exitCode, without.stderr]).toEqual([2, expect.stringContaining('DATABASE_URL is missing')])
})

test('the program prints help, works on the database, and passes on its exit code', async () => {
  const program = fileURLToPath(new URL('./main.ts', import.meta.url))
  const run = (args: string[]) =>
    promisify(execFile)(process.execPath, [program, ...args], { env: { DATABASE_URL: world.database.url } })
  expect((await run(['admin', '--help'])).stdout).toContain('purser admin create-organisation')
  expect((await run(['admin', 'create-key', '--help'])).stdout).toContain('--environment')
  const { stdout } = await run([
    'admin',
    'create-organisation',
    '--name',
    'P',
    '--email',
    'p@example.com',
    '--format=json',
  ])
  expect(Made.parse(JSON.parse(stdout)).organisation.name).toBe('P')
  await expect(run(['admin', 'nothing'])).rejects.toMatchObject({ code: 2 })
})

test('create-key limits a key to scopes and an end; set-role makes an owner, and the last owner stays one', async () => {
  const { organisation, owner } = await create()
  const ofKey = [
    'create-key',
    '--organisation',
    organisation.id,
    '--environment',
    'test',
    '--name',
    'x',
    '--format',
    'json',
  ]
  const made = await admin([...ofKey, '--scopes', 'vaults,read', '--expires-at', '2100-01-01'])
  const key = z
    .object({ key: z.string(), scopes: z.array(z.string()), expiresAt: z.string() })
    .parse(JSON.parse(made.stdout))
  expect(key).toMatchObject({ scopes: ['read', 'vaults'], expiresAt: '2100-01-01T00:00:00.000Z' })
  expect((await world.call(key.key, 'POST', '/webhooks', {})).status).toBe(403)
  expect((await admin([...ofKey, '--scopes', 'all'])).exitCode).toBe(2)

  const invited = await world.call(
    z.object({ key: z.string() }).parse(JSON.parse((await admin(ofKey)).stdout)).key,
    'POST',
    '/organisations/current/members',
    { email: `${organisation.id}@example.com` },
  )
  await world.database.db.run(
    sql`update members set accepted_at = now() where invited_as = ${String(invited.body.accountId)}`,
  )
  const roleOf = (account: unknown, role: string) =>
    admin(['set-role', '--organisation', organisation.id, '--account', String(account), '--role', role])
  expect(await roleOf(owner.id, 'admin')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('must have an owner'),
  })
  expect(await roleOf(invited.body.accountId, 'owner')).toMatchObject({ exitCode: 0 })
  expect(await roleOf(owner.id, 'admin')).toMatchObject({ exitCode: 0 })
  expect((await roleOf('acc_01h455vb4pex5vsknk084sn02q', 'owner')).exitCode).toBe(1)
})
