import { afterAll, beforeAll, expect, test } from 'vitest'
import { aStage, type Stage } from '../../server/test/webhooks/stage.ts'
import type { Org } from '../../server/test/world.ts'
import { purserOf, ran } from './stage.ts'

let stage: Stage
let org: Org
beforeAll(async () => {
  stage = await aStage()
  org = await stage.world.organisation('enterprise')
})
afterAll(() => stage?.stop())

const envOf = (key: string) => ({ PURSER_BASE_URL: stage.world.base, PURSER_API_KEY: key })
const run = (args: readonly string[], key = org.testKey) => purserOf(envOf(key), args)
const json = async (args: readonly string[]) => JSON.parse((await run([...args, '--format', 'json'])).stdout)

test('every event type is listed, and each of them triggered is delivered to a webhook', async () => {
  const hook = await stage.hook(org)
  const { code, stdout: listed } = await run(['trigger', '--list'])
  const types = listed.trim().split('\n')
  expect([code, types.length]).toEqual([0, 27])
  expect((await json(['trigger', '--list'])).map(({ type }: { type: string }) => type)).toEqual(types)
  const [first = '', ...others] = types
  expect(await json(['trigger', first])).toMatchObject({ type: first })
  // A process for each would take half a minute.
  for (const type of others) {
    const { stdout } = await ran(['trigger', type, '--format', 'json'], { env: envOf(org.testKey), fetch })
    const event = JSON.parse(stdout)
    expect(event).toMatchObject({ type, id: expect.stringMatching(/^evt_/) })
  }
  await hook.receiver.until(types.length)
  expect(hook.receiver.arrived.map(({ type }) => type).toSorted()).toEqual(types.toSorted())
})

test('nothing is made up in the live environment', async () => {
  const { code, stdout, stderr } = await run(['trigger', 'vault.sealed'], org.liveKey)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^Test Environment Only \(403\)\n.*test key.\nRequest req_\w+\n$/)
})

test('events are listed newest first, filtered by type and limit, and a single event is shown with its payload', async () => {
  const own = await stage.world.organisation()
  const ids = [...(await stage.publish(own, 600))]
  await stage.publish(own, 2, 'vault.expired')
  const list = async (args: readonly string[]) =>
    JSON.parse((await run(['events', 'list', ...args, '--format', 'json'], own.testKey)).stdout)
  expect(await list([])).toHaveLength(20)
  const all = await list(['--type', 'vault.persisted', '--limit', '1000'])
  expect(all.map(({ id }: { id: string }) => id)).toEqual(ids.sort().reverse())
  const people = await run(['events', 'list', '--type', 'vault.expired'], own.testKey)
  expect(people.stdout.trim().split('\n')).toHaveLength(2)
  const one = await run(['events', 'get', ids[0] ?? ''], own.testKey)
  expect(one.stdout).toContain(`vault.persisted  ${ids[0]}\n`)
  expect(one.stdout).toContain('"vaultId"')
  expect(await run(['events', 'get', ids[0] ?? ''])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^Event Not Found \(404\)/),
  })
})

test('an event is sent again under its own id: to all, or to one webhook', async () => {
  const own = await stage.world.organisation()
  const [all, one] = [await stage.hook(own), await stage.hook(own, { events: ['vault.sealed'] })]
  const [id = ''] = await stage.publish(own)
  await all.receiver.until(1)
  expect(await run(['events', 'resend', id], own.testKey)).toEqual({
    code: 0,
    stdout: `${id} is sent again to 1 webhook, and all listeners.\n`,
    stderr: '',
  })
  await all.receiver.until(2)
  const { stdout } = await run(['events', 'resend', id, '--webhook', one.id, '--format', 'json'], own.testKey)
  expect(JSON.parse(stdout)).toEqual({ eventId: id, deliveries: 1 })
  await one.receiver.until(1)
  expect([all.receiver.ids(), one.receiver.ids()]).toEqual([[id, id], [id]])
})
