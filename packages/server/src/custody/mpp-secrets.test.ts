import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../test/database.ts'
import { steadyWitness } from '../../test/steady-witness.ts'
import { createSignatures } from '../chain/signatures/signatures.ts'
import { instantOf } from '../platform/clock.ts'
import type { Tenant } from '../platform/ctx.ts'
import { sql } from '../platform/db/db.ts'
import { createLog } from '../platform/log.ts'
import { createOutbound } from '../platform/outbound.ts'
import { systemRandom } from '../platform/random.ts'
import { type MppMacs, openCustody, openKeyRing, rotateMppSecret } from './index.ts'
import { createMppSecrets } from './mpp-secrets.ts'

const source = { base64: randomBytes(32).toString('base64') }
const challengeSeconds = 300
const acme: Tenant = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'live' }

let database: TestDatabase
let nowMs: number
const clock = { now: () => instantOf(nowMs) }
const asOperator = { actor: { kind: 'operator' }, requestId: 'req_01h455vb4pex5vsknk084sn02q' } as const
const floor = () => ({ db: database.db, clock, random: systemRandom, log: createLog({ level: 'silent' }) })

beforeEach(async () => {
  nowMs = Date.parse('2026-11-22T00:00:00Z')
  database = await freshDatabase()
})
afterEach(() => database.drop())

/** A process of the deployment. */
async function aProcess() {
  const signatures = await createSignatures()
  const custody = await openCustody({
    witness: steadyWitness,
    ...floor(),
    signatures,
    outbound: createOutbound(),
    keys: { first: source, also: [] },
    createIfMissing: true,
    mppChallengeSeconds: challengeSeconds,
  })
  return (tenant = acme) => custody.mppSecrets.macs(tenant)
}

async function rotate(first = source) {
  const opening = { ...floor(), outbound: createOutbound(), createIfMissing: false }
  return rotateMppSecret({ ...floor(), ...asOperator, ring: await openKeyRing({ first, also: [] }, opening) })
}

function takes({ all }: MppMacs, id: string): boolean {
  return all.some((mac) => mac('text') === id)
}

test('no organisation or environment can verify a challenge id of another', async () => {
  const macs = await aProcess()
  const id = (await macs()).current('text')
  expect(Buffer.from(id, 'base64url')).toHaveLength(32)
  expect(takes(await macs(), id)).toBe(true)
  for (const other of [
    { ...acme, environment: 'test' as const },
    { ...acme, organisationId: 'org_01h455vb4pex5vsknk084sn02r' as const },
  ])
    expect(takes(await macs(other), id)).toBe(false)
})

test('during rotations, every process accepts ids made by any process until they expire', async () => {
  const processes = []
  for (let index = 0; index < 3; index += 1) {
    processes.push(await aProcess())
    nowMs += 3_700
  }
  const made: { readonly id: string; readonly expiresMs: number }[] = []
  const used = new Set<string>()
  const refused: string[] = []
  for (let second = 0; second < 420; second += 1) {
    nowMs += 1_000
    if (second === 20 || second === 100 || second === 105) await rotate()
    for (const [index, macs] of processes.entries()) {
      const now = await macs()
      if (second < 130 && second % 3 === 0)
        made.push({ id: now.current('text'), expiresMs: nowMs + challengeSeconds * 1_000 })
      used.add(now.current('text'))
      for (const { id, expiresMs } of made)
        if (expiresMs > nowMs && !takes(now, id)) refused.push(`${index} at ${second}`)
    }
  }
  expect(refused).toEqual([])
  expect(used.size).toBe(4)
})

test('a secret retired longer ago than a challenge’s lifetime is no longer accepted', async () => {
  const macs = await aProcess()
  const id = (await macs()).current('text')
  await rotate()
  nowMs += (challengeSeconds + 59) * 1_000
  expect(takes(await macs(), id)).toBe(true)
  expect((await macs()).current('text')).not.toBe(id)
  nowMs += 11_000
  expect(takes(await macs(), id)).toBe(false)
})

test('a secret proves for seven days after it was retired to which challenge money was sent', async () => {
  const macs = await aProcess()
  const id = (await macs()).current('text')
  await rotate()
  const isRetired = async () => (await macs()).retired.some((mac) => mac('text') === id)
  expect(await isRetired()).toBe(false)
  nowMs += (challengeSeconds + 70) * 1_000
  expect(await isRetired()).toBe(true)
  nowMs += 7 * 86_400_000
  expect(await isRetired()).toBe(false)
})

test('concurrent rotations leave one current secret, and all others retired', async () => {
  await aProcess()
  const rotations = await Promise.all([rotate(), rotate(), rotate()])
  expect(new Set(rotations.map(({ current }) => current)).size).toBe(3)
  const Row = z.object({ kid: z.string(), retiredAt: z.date().nullable() })
  const rows = await database.db.many(Row, sql`select kid, retired_at from sealed_keys where purpose = 'mpp-challenge'`)
  expect(rows).toHaveLength(4)
  expect(rows.filter(({ retiredAt }) => retiredAt === null)).toHaveLength(1)
  const macs = await aProcess()
  expect((await macs()).all).toHaveLength(4)
})

test('a rotation with another key-encryption key changes nothing', async () => {
  const macs = await aProcess()
  const id = (await macs()).current('text')
  const other = { base64: randomBytes(32).toString('base64') }
  await expect(rotate(other)).rejects.toThrow(/is not the one/)
  nowMs += 60_000
  expect((await macs()).current('text')).toBe(id)
  expect((await macs()).all).toHaveLength(1)
})

test('a secret is unsealed once, however often the list is read, also concurrently', async () => {
  await aProcess()
  const opened: string[] = []
  const secrets = createMppSecrets({
    ...floor(),
    mppChallengeSeconds: challengeSeconds,
    openKey: async (row) => {
      opened.push(row.kid)
      return randomBytes(32)
    },
  })
  const first = await Promise.all(Array.from({ length: 20 }, () => secrets.macs(acme)))
  expect(new Set(first.map(({ current }) => current('text'))).size).toBe(1)
  for (let second = 0; second < 60; second += 1) {
    nowMs += 1_000
    await secrets.macs(acme)
  }
  expect(opened).toHaveLength(1)
})
