import { afterEach, beforeEach, expect, test } from 'vitest'
import { createPurser } from '../src/index.ts'
import { type FakePurser, startFakePurser } from './fake-purser.ts'

let fake: FakePurser
beforeEach(async () => {
  fake = await startFakePurser()
})
afterEach(() => fake.stop())

const session = { organisationId: 'org_1', environment: 'test' } as const

test('a signed-in person calls with the cookie, the organisation and the environment, and with no key', async () => {
  const requests: RequestInit[] = []
  fake.script('/account', { status: 200, body: { id: 'acc_1' } })
  const purser = createPurser({
    session,
    baseUrl: fake.baseUrl,
    fetch: (input, init = {}) => {
      requests.push(init)
      return fetch(input, init)
    },
  })
  await purser.account.get()
  expect(requests[0]).toMatchObject({ credentials: 'include', redirect: 'manual' })
  const { headers } = fake.seen[0] ?? { headers: {} }
  expect(headers).toMatchObject({ 'x-service-organisation': 'org_1', 'x-service-environment': 'test' })
  expect(headers).not.toHaveProperty('authorization')
})

test('every write of a person is JSON, also one without a body, and a read is not', async () => {
  fake.script('/wh_1/test', { status: 201, body: {} })
  fake.script('/account', { status: 200, body: { id: 'acc_1' } })
  const purser = createPurser({ session, baseUrl: fake.baseUrl })
  await purser.webhooks.test('wh_1')
  await purser.account.get()
  expect(fake.seen.map(({ headers }) => headers['content-type'])).toEqual(['application/json', undefined])
})

test('before an organisation is chosen no header names one', async () => {
  fake.script('/account', { status: 200, body: { id: 'acc_1' } })
  await createPurser({ session: {}, baseUrl: fake.baseUrl }).account.get()
  expect(Object.keys(fake.seen[0]?.headers ?? {}).filter((name) => name.startsWith('x-service'))).toEqual([])
})
