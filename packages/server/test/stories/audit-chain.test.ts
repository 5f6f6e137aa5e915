import { type AuditRecord, createPurser } from '@purser/sdk'
import { verifyAuditLog } from '@purser/sdk/seal'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aWorld, type Org, type World } from '../world.ts'

let world: World
let org: Org
let whole: readonly AuditRecord[]

/** Records of both environments and of none, with letters beyond ASCII. */
beforeAll(async () => {
  world = await aWorld()
  org = await world.organisation()
  for (const name of ['Zürich 🏦', '"quoted" \\ <b>', 'Acme']) {
    await world.call(org.testKey, 'PATCH', '/organisations/current', { name })
    for (const environment of ['test', 'live'] as const)
      await world.call(environment === 'test' ? org.testKey : org.liveKey, 'POST', '/organisations/current/api-keys', {
        name,
        environment,
      })
  }
  whole = await logOf(org.liveKey).toArray({ limit: 1_000 })
})
afterAll(() => world?.stop())

const logOf = (apiKey: string) => createPurser({ apiKey, baseUrl: world.base }).organisations.auditLog({ limit: 3 })

async function* of(records: readonly AuditRecord[]): AsyncGenerator<AuditRecord> {
  yield* records
}

const check = (records: AsyncIterable<AuditRecord>, keptHash?: string) =>
  verifyAuditLog(records, { organisationId: org.id, keptHash })

test('a live key checks the whole log, page after page, with what the API answers alone', async () => {
  expect(whole.length).toBeGreaterThan(8)
  expect(await check(logOf(org.liveKey), whole[3]?.hash)).toEqual({
    ok: true,
    brokenAt: undefined,
    records: whole.length,
    gaps: 0,
    fromFirst: true,
    oldest: { sequence: 1, previousHash: '0'.repeat(64) },
    newestHash: whole[0]?.hash,
    hasKept: true,
  })
  expect((await check(logOf(org.liveKey), 'f'.repeat(64))).hasKept).toBe(false)
})

test('a test key checks each record that it sees, and counts the places where live ones are between', async () => {
  const verdict = await check(logOf(org.testKey))
  expect(verdict).toMatchObject({ ok: true, brokenAt: undefined })
  expect(verdict.records).toBeLessThan(whole.length)
  expect(verdict.gaps).toBeGreaterThan(0)
})

test('a record that was changed in any member, moved, doubled or taken from another organisation is found', async () => {
  const at = 4
  const target = whole[at]
  if (target === undefined) throw new Error('the log is too short')
  const changes: Readonly<Record<string, Partial<AuditRecord>>> = {
    id: { id: 'aud_01h455vb4pex5vsknk084sn02q' },
    environment: { environment: target.environment === 'live' ? 'test' : 'live' },
    action: { action: 'organisations.members.remove' },
    actor: { actor: { kind: 'operator' } },
    request: { requestId: 'req_other' },
    target: { target: 'key_other' },
    details: { details: { ...target.details, more: 1 } },
    time: { createdAt: '2020-01-01T00:00:00.000Z' },
    previous: { previousHash: 'a'.repeat(64) },
    hash: { hash: 'a'.repeat(64) },
    noHash: { previousHash: 'not a hash' },
  }
  for (const [name, change] of Object.entries(changes)) {
    const { ok, brokenAt } = await check(
      of(whole.map((record, index) => (index === at ? { ...record, ...change } : record))),
    )
    expect([name, ok]).toEqual([name, false])
    expect([name, Math.abs((brokenAt ?? 0) - target.sequence) <= 1]).toEqual([name, true])
  }
  expect((await check(of([...whole.slice(0, at), target, ...whole.slice(at)]))).ok).toBe(false)
  expect((await check(of(whole.toReversed()))).ok).toBe(false)
  expect((await verifyAuditLog(of(whole), { organisationId: 'org_other' })).ok).toBe(false)
})

test('a record that is missing inside is a gap, and without the first one the log is not whole', async () => {
  expect((await check(of(whole.toSpliced(4, 1)))).gaps).toBe(1)
  const [rest, gone] = [whole.slice(0, -1), whole.at(-1)]
  expect(await check(of(rest), gone?.hash)).toMatchObject({
    ok: true,
    fromFirst: false,
    oldest: { sequence: 2, previousHash: gone?.hash },
    hasKept: true,
  })
  expect((await check(of(rest), gone?.previousHash)).hasKept).toBe(false)
  expect(await check(of([]))).toMatchObject({ ok: true, records: 0, fromFirst: false, newestHash: undefined })
})
