import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { toyDeps } from '../../../test/toy-deps.ts'
import { knownBrowserValue } from './known-browser.ts'
import { newSignInLink } from './links.ts'
import { maySend, sendOrForget } from './mails.ts'
import { insertLink, markLinkUsed } from './store.ts'

const minute = 60_000
const secret = 's'.repeat(32)
let database: TestDatabase
let now = new Date('2026-11-28T12:00:00Z')

beforeAll(async () => {
  database = await freshDatabase()
})
afterAll(() => database?.drop())

const depsOf = () => ({ ...toyDeps(database.db), clock: { now: () => now } })
const wait = (ms: number) => {
  now = new Date(now.getTime() + ms)
}

/** Stores a link for an address; returns whether it would be sent, and what uses it. */
async function request(email: string, cookies?: string) {
  const deps = depsOf()
  const { link } = newSignInLink(deps, { email, baseUrl: deps.baseUrl })
  await insertLink(deps.db, link)
  const mail = { kind: 'link', email: link.email, proof: Buffer.from(link.tokenHash).toString('hex') } as const
  const isSent = await maySend(deps, { secret }, mail, { email, cookies })
  return { isSent, mail, use: () => markLinkUsed(deps.db, link.tokenHash, now) }
}

test('strangers can have one mail sent in five minutes, however many ask at once', async () => {
  const email = 'Flooded@example.com'
  const sent = []
  for (let round = 0; round < 6; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => request(email)))
    sent.push(answers.filter(({ isSent }) => isSent).length)
    wait(2.5 * minute)
  }
  expect(sent).toEqual([1, 0, 1, 0, 1, 0])
})

test('at any time a person who asks has a link that works for five minutes, sent or in the mailbox', async () => {
  const email = 'person@example.com'
  let newest = await request(email)
  for (let round = 0; round < 40; round++) {
    wait(37_000)
    const response = await request(email)
    if (response.isSent) newest = response
    wait(5 * minute - 37_000 * (round % 2))
    expect(await newest.use(), `round ${round}`).toBe(true)
    newest = await request(email)
    expect(newest.isSent, 'the link before it was used').toBe(true)
  }
})

test('a mail that could not be sent keeps nobody from the next', async () => {
  const email = 'lost@example.com'
  const { mail } = await request(email)
  const failing = sendOrForget(depsOf(), mail, async () => {
    throw new Error('the mail server is away')
  })
  await expect(failing).rejects.toThrow('away')
  expect((await request(email)).isSent).toBe(true)
  expect((await request(email)).isSent).toBe(false)
})

test('a browser in which the person signed in gets a mail whatever strangers requested, and no other browser does', async () => {
  const email = 'known@example.com'
  const cookieOf = (address: string) => {
    const value = knownBrowserValue(address, 'browser')
    const signature = createHmac('sha256', secret).update(value).digest('base64')
    return `purser.known_browser=${encodeURIComponent(`${value}.${signature}`)}`
  }
  expect((await request(email)).isSent).toBe(true)
  expect((await request(email, cookieOf('other@example.com'))).isSent).toBe(false)
  expect((await request(email, cookieOf(email))).isSent).toBe(true)
})
