import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../db/db.ts'
import { failPlatform, Problem } from '../errors.ts'
import { callerOf, createAdmission } from './admission.ts'
import { createResponseLimits } from './response-size.ts'

/** What callers owe for work that cost more than they had. */

const now = new Date(0)
const clock = { now: () => now }
const reply = { headers: () => undefined }
const keyLimit = { perSecond: 1, burst: 10 }
const admission = () => createAdmission({ keyLimit, addressLimit: { perSecond: 1_000, burst: 1_000 } }, clock)
const key = { id: 'key_1', owner: 'org_1' }

/** Runs a count and returns how long the caller has to wait; 0 if it is admitted. */
function waitOf(count: () => void): unknown {
  try {
    count()
    return 0
  } catch (error) {
    if (error instanceof Problem && error.code === 'rate-limit-exceeded') return error.members.retryAfterSeconds
    throw error
  }
}

test('a key owes what it took, and not its burst, up to what ten minutes refill', () => {
  const admit = admission()
  admit.owe(key, 62)
  expect(waitOf(() => admit.caller(key, reply))).toBe(53)
  admit.owe(key, 1_000_000)
  expect(waitOf(() => admit.caller(key, reply))).toBe(601)
})

test('what costs more than the burst needs half of it, and the rest is owed', () => {
  const admit = admission()
  admit.caller(key, reply)
  expect(waitOf(() => admit.cost(key, 40, reply))).toBe(0)
  expect(waitOf(() => admit.caller(key, reply))).toBe(32)
})

test('nothing needs more than half of the burst at once', () => {
  for (const cost of [6, 9, 10, 11]) {
    const admit = admission()
    for (let request = 0; request < 5; request += 1) admit.caller(key, reply)
    expect([cost, waitOf(() => admit.cost(key, cost, reply))]).toEqual([cost, 0])
    expect(waitOf(() => admit.caller(key, reply))).toBe(cost - 4)
  }
})

const organisationLimit = { perSecond: 2, burst: 20 }
const addressLimit = { perSecond: 1_000, burst: 1_000 }

test('the reads of one key keep the other keys of its organisation waiting for seconds, and itself for minutes', () => {
  const admit = createAdmission({ keyLimit, addressLimit, organisationLimit }, clock)
  admit.owe(key, 10_000)
  expect(waitOf(() => admit.caller({ ...key, id: 'key_2' }, reply))).toBe(11)
  expect(waitOf(() => admit.caller({ ...key, owner: 'org_2' }, reply))).toBe(601)
})

test('a request that one of two limits refuses takes nothing from the other', () => {
  const admit = createAdmission({ keyLimit, addressLimit, organisationLimit }, clock)
  const keyOf = (name: string) => ({ id: name, owner: 'org_1' })
  expect(waitOf(() => admit.cost(keyOf('key_1'), 100, reply))).toBe(0)
  for (let time = 0; time < 3; time += 1) expect(waitOf(() => admit.cost(keyOf('key_2'), 100, reply))).toBe(15)
  expect(waitOf(() => admit.caller({ id: 'key_2', owner: 'org_2' }, reply))).toBe(0)
  for (let time = 0; time < 3; time += 1) expect(waitOf(() => admit.cost(keyOf('key_1'), 100, reply))).toBe(95)
})

test('test keys of an owner use up no requests and no overdue pages of its live keys, nor live keys those of test keys', () => {
  const admit = createAdmission({ keyLimit, addressLimit, organisationLimit }, clock)
  const keyOf = (apiKeyId: `key_${string}`, environment: 'test' | 'live') =>
    callerOf({ actor: { kind: 'api-key', apiKeyId }, shareOwner: 'org_1', tenant: { environment } })
  for (const name of ['key_1', 'key_2'] as const) admit.owe(keyOf(name, 'test'), 20)
  const waits = [keyOf('key_3', 'test'), keyOf('key_4', 'live')].map((caller) =>
    waitOf(() => admit.caller(caller, reply)),
  )
  expect(waits).toEqual([11, 0])
  const overdue = [keyOf('key_5', 'test'), keyOf('key_6', 'test'), keyOf('key_7', 'live')].map(admit.takeOverdue)
  expect(overdue).toEqual([true, false, true])
})

test('expensive requests of guests share a limit of the owner, and take nothing from its keys or from small requests', () => {
  const admit = createAdmission({ keyLimit, addressLimit: { perSecond: 1, burst: 10 }, organisationLimit }, clock)
  const guest = (id: string) => ({ id, owner: 'org_1' })
  const small = (id: string, ip: string) => waitOf(() => admit.guest({ id, ip }, reply))
  expect(waitOf(() => admit.guestCost(guest('vat_1'), 60, reply))).toBe(0)
  expect(waitOf(() => admit.guestCost(guest('vat_2'), 60, reply))).toBe(15)
  expect([small('vat_1', '203.0.113.1'), small('vat_2', '203.0.113.2')]).toEqual([50, 0])
  expect(waitOf(() => admit.caller(key, reply))).toBe(0)
})

test('the guests of one vault keep those of another waiting for seconds, and themselves for minutes', () => {
  const admit = createAdmission({ keyLimit, addressLimit: { perSecond: 1, burst: 60 }, organisationLimit }, clock)
  const guest = (id: string) => ({ id, owner: 'org_1' })
  admit.oweGuest(guest('vat_1'), 10_000)
  expect(waitOf(() => admit.guestCost(guest('vat_2'), 60, reply))).toBe(15)
  expect(waitOf(() => admit.guest({ id: 'vat_1', ip: '203.0.113.1' }, reply))).toBe(600)
})

test('what is made while it is sent is charged before its first piece', () => {
  const { ofOperations } = createResponseLimits(64 * 2 ** 20)
  const ctx = { ...toyDeps({} as unknown as Db), requestId: 'req_00000000000000000000000000' as never }
  let [owed, pieces] = [0, 0]
  const body = new Readable({ read: () => (pieces += 1) })
  const response = { status: 200, headers: {}, body, bytesRead: 60_000_000 }
  const sending = { destroyed: false, once: () => undefined, destroy: () => undefined }
  const refuse = (): never => {
    throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
  }
  const common = { ctx, shareOwner: 'org_1', method: 'GET', response, sending, owe: (cost: number) => (owed += cost) }
  const charged: number[] = []
  expect(ofOperations({ ...common, charge: (cost) => charged.push(cost) })).toBe(response)
  expect(ofOperations({ ...common, charge: refuse }).status).toBe(429)
  expect([charged, owed, pieces, body.destroyed]).toEqual([[915], 0, 0, true])
})
