import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { toyDeps } from '../../../test/toy-deps.ts'
import type { Db } from '../db/db.ts'
import { failPlatform, Problem } from '../errors.ts'
import { createAdmission } from './admission.ts'
import { createAnswerLimits } from './answer-size.ts'

/** Audit row S6: what callers owe for work that cost more than they had. */

const now = new Date(0)
const clock = { now: () => now }
const reply = { headers: () => undefined }
const keyLimit = { perSecond: 1, burst: 10 }
const admission = () => createAdmission({ keyLimit, addressLimit: { perSecond: 1_000, burst: 1_000 } }, clock)
const key = { id: 'key_1', placeOwner: 'org_1' }

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

test('S6: a key owes what it took, and not its burst, up to what ten minutes refill', () => {
  const admit = admission()
  admit.owe(key, 62)
  expect(waitOf(() => admit.caller(key, reply))).toBe(53)
  admit.owe(key, 1_000_000)
  expect(waitOf(() => admit.caller(key, reply))).toBe(601)
})

test('S6: what costs more than the burst needs half of it, and the rest is owed', () => {
  const admit = admission()
  admit.caller(key, reply)
  expect(waitOf(() => admit.cost(key, 40, reply))).toBe(0)
  expect(waitOf(() => admit.caller(key, reply))).toBe(32)
})

test('S6: guests owe by themselves and to the owner of what they read, and keep none of its keys waiting', () => {
  const admit = admission()
  const guest = (id: string, placeOwner: string) =>
    waitOf(() => admit.guest({ id, placeOwner, ip: '203.0.113.1' }, reply))
  for (const id of ['vat_1', 'vat_2']) admit.oweGuest({ id, placeOwner: 'org_1' }, 62)
  expect([guest('vat_3', 'org_1'), guest('vat_4', 'org_2')]).toEqual([114, 0])
  expect(waitOf(() => admit.caller(key, reply))).toBe(0)
})

test('S6: what is made while it is sent is charged before its first piece', () => {
  const { ofOperations } = createAnswerLimits(64 * 2 ** 20)
  const ctx = { ...toyDeps({} as unknown as Db), requestId: 'req_00000000000000000000000000' as never }
  let [owed, pieces] = [0, 0]
  const body = new Readable({ read: () => (pieces += 1) })
  const answer = { status: 200, headers: {}, body, bytesRead: 60_000_000 }
  const sending = { destroyed: false, once: () => undefined }
  const refuse = (): never => {
    throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
  }
  const common = { ctx, placeOwner: 'org_1', method: 'GET', answer, sending, owe: (cost: number) => (owed += cost) }
  const charged: number[] = []
  expect(ofOperations({ ...common, charge: (cost) => charged.push(cost) })).toBe(answer)
  expect(ofOperations({ ...common, charge: refuse }).status).toBe(429)
  expect([charged, owed, pieces, body.destroyed]).toEqual([[915], 0, 0, true])
})
