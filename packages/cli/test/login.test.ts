import { chmodSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../../server/test/world.ts'
import { aDirectory, purserOf } from './stage.ts'

let world: World
let org: Org
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation('enterprise')
})
afterAll(() => world?.stop())

/** A user without settings. */
function aUser() {
  const { directory } = aDirectory()
  const file = path.join(directory, 'purser', 'credentials.json')
  const env = { HOME: directory, XDG_CONFIG_HOME: directory }
  return { env, file, run: (args: readonly string[], stdin?: string) => purserOf(env, args, stdin ? { stdin } : {}) }
}

test('a key that is piped in is checked, kept where nobody else reads it, never shown whole, and used from then on', async () => {
  const { run, file } = aUser()
  const { code, stdout, stderr } = await run(['login', '--base-url', `${world.base}/`], `${org.testKey}\n`)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`Acme (${org.id}), test environment`)
  expect(stdout).toContain(`svc_test_sk_…${org.testKey.slice(-4)} is stored in ${file}`)
  expect(stdout).not.toContain(org.testKey.slice(12, -4))
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ baseUrl: world.base, apiKey: org.testKey })
  expect([statSync(file).mode & 0o777, statSync(path.dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
  expect((await run(['events', 'list'])).code).toBe(0)
})

test('a key that the service does not know is not kept, and the reason and the request are shown without a trace of the code', async () => {
  const { run, file } = aUser()
  const other = await aWorld()
  const stranger = await other.organisation()
  await other.stop()
  const { code, stdout, stderr } = await run(['login', '--base-url', world.base, '--key', stranger.testKey])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^Unauthorized \(401\)\nAPI key is invalid or missing: .*\nRequest req_[0-9a-z]{26}\n$/)
  expect(() => statSync(file)).toThrow(/ENOENT/)
  const json = await run(['events', 'list', '--base-url', world.base, '--key', stranger.testKey, '--format', 'json'])
  expect({ code: json.code, stderr: json.stderr, output: JSON.parse(json.stdout) }).toMatchObject({
    code: 1,
    stderr: '',
    output: { error: { status: 401, code: 'unauthorized', requestId: expect.stringMatching(/^req_/) } },
  })
})

test('a second login takes the place of the first, and logging out forgets the key', async () => {
  const { run, file } = aUser()
  await run(['login', '--base-url', world.base, '--key', org.testKey])
  const { code, stdout } = await run(['login', '--format', 'json'], org.liveKey)
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, environment: 'live', baseUrl: world.base })
  expect(JSON.parse(readFileSync(file, 'utf8')).apiKey).toBe(org.liveKey)
  expect(await run(['logout'])).toEqual({ code: 0, stdout: `${file} is deleted.\n`, stderr: '' })
  expect(await run(['logout'])).toEqual({ code: 0, stdout: 'There was no stored key.\n', stderr: '' })
  expect(await run(['events', 'list'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Not logged in'),
  })
})

test('flags go before the environment, and that before what was kept', async () => {
  const { run, env } = aUser()
  const other = await world.organisation()
  await run(['login', '--base-url', world.base, '--key', org.testKey])
  const triggered = async (own: Readonly<Record<string, string>>, args: readonly string[] = []) => {
    const { stdout } = await purserOf({ ...env, ...own }, ['trigger', 'vault.sealed', '--format', 'json', ...args])
    const id = JSON.parse(stdout).id
    for (const owner of [org, other])
      if ((await world.call(owner.testKey, 'GET', `/events/${id}`)).status === 200) return owner.id
    return undefined
  }
  expect(await triggered({})).toBe(org.id)
  expect(await triggered({ PURSER_API_KEY: other.testKey })).toBe(other.id)
  expect(await triggered({ PURSER_API_KEY: other.testKey }, ['--key', org.testKey])).toBe(org.id)
  expect(await triggered({ PURSER_API_KEY: '', PURSER_BASE_URL: '' })).toBe(org.id)
})

test('the kept key goes to the service that it was kept for and to no other', async () => {
  const { run, env } = aUser()
  await run(['login', '--base-url', world.base, '--key', org.testKey])
  for (const [own, args] of [
    [{}, ['--base-url', 'https://evil.example.com']],
    [{ PURSER_BASE_URL: 'https://evil.example.com' }, []],
  ] as const) {
    const { code, stderr } = await purserOf({ ...env, ...own }, ['events', 'list', ...args])
    expect([code, stderr]).toEqual([2, expect.stringContaining('is not sent anywhere else')])
  }
})

test('a kept key that others can read, and a file that somebody else wrote, are not used', async () => {
  const { run, file } = aUser()
  await run(['login', '--base-url', world.base, '--key', org.testKey])
  chmodSync(file, 0o640)
  expect(await run(['events', 'list'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('readable by other users'),
  })
  expect(await run(['login', '--base-url', world.base], org.testKey)).toMatchObject({ code: 0 })
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test('login without input exits with 2', async () => {
  const { run } = aUser()
  const { code, stderr } = await run(['login', '--base-url', world.base])
  expect([code, stderr]).toEqual([2, expect.stringContaining('No key was given')])
})

test('a service that does not respond is reported with its address and the cause, and ends with 2', async () => {
  const { run } = aUser()
  const { code, stderr } = await run(['login', '--base-url', 'http://127.0.0.1:9', '--key', org.testKey])
  expect([code, stderr]).toEqual([
    2,
    'No Response\nNo response from http://127.0.0.1:9 (connection-failed: bad port).\n',
  ])
})
