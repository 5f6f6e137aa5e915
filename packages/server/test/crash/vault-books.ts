import { readdirSync, renameSync } from 'node:fs'
import path from 'node:path'
import { eventsHeadOf, readManifest, type SealKey, verifySeal } from '@purser/protocol'
import { expect } from 'vitest'
import { z } from 'zod'
import { type Db, type Sql, sql } from '../../src/platform/db/db.ts'
import { ed25519 } from '../stories/vaults-stage.ts'
import { request } from '../world.ts'
import type { Env } from './service.ts'
import type { Life } from './vault-load.ts'

const CountRow = z.object({ count: z.bigint().transform(Number) })

export async function countOf(db: Db, statement: Sql): Promise<number> {
  return (await db.one(CountRow, statement)).count
}

/** What a check needs to read the deployment. */
export interface Reader {
  readonly base: string
  readonly key: string
  readonly env: Env
  readonly db: Db
}

async function read({ base, key }: Reader, where: string, method = 'GET'): Promise<Readonly<Record<string, unknown>>> {
  const response = await request(base, { key, method, path: where })
  expect(response.status, `${where}: ${JSON.stringify(response.body)}`).toBeLessThan(300)
  return response.body
}

const Item = z.object({ id: z.string(), name: z.string(), sha256: z.string(), size: z.number() })
const State = z.object({ documents: z.array(Item), files: z.array(Item), eventCount: z.number() })
const DidDocument = z.object({
  verificationMethod: z.array(z.object({ id: z.string(), publicKeyJwk: z.object({ x: z.string() }) })),
})

export async function keysOf(base: string): Promise<readonly SealKey[]> {
  const document: unknown = await (await fetch(`${base}/.well-known/did.json`)).json()
  return DidDocument.parse(document).verificationMethod.map(({ id, publicKeyJwk }) => ({ kid: id, x: publicKeyJwk.x }))
}

const EventRow = z.object({
  sequence: z.number(),
  id: z.string(),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  createdAt: z.date(),
})

async function streamOf(db: Db, vaultId: string) {
  const rows = await db.many(
    EventRow,
    sql`select sequence, id, type, payload, created_at from vault_events where vault_id = ${vaultId} order by sequence`,
  )
  return rows.map(({ sequence, id, type, payload, createdAt }) => {
    return { sequence, event: { eventId: id, type, vaultId, timestamp: createdAt.toISOString(), payload } }
  })
}

/** Totals of lives that have all ended. */
export interface LifeTotals {
  acknowledged: number
  /** Unanswered writes that are in the vault, complete, and those that were never stored. */
  unansweredKept: number
  unansweredGone: number
  items: number
}

/**
 * Every life is sealed, once and completely, and contains what was acknowledged before the seal. Nothing was accepted
 * after it.
 */
export async function expectSealed(reader: Reader, lives: readonly Life[]): Promise<LifeTotals> {
  const totals = { acknowledged: 0, unansweredKept: 0, unansweredGone: 0, items: 0 }
  const keys = await keysOf(reader.base)
  for (const life of lives) await expectLife(reader, life, { keys, totals })
  return totals
}

async function expectLife(
  reader: Reader,
  { vaultId, writes, seals }: Life,
  { keys, totals }: { readonly keys: readonly SealKey[]; readonly totals: LifeTotals },
): Promise<void> {
  const proof = await read(reader, `/vaults/${vaultId}/proof`)
  expect(await verifySeal(proof, ed25519, keys), vaultId).toMatchObject({ ok: true })
  const manifest = readManifest(proof.manifest)
  if (!('value' in manifest)) throw new Error('the proof has no manifest')
  const { items, eventsHead } = manifest.value
  const state = State.parse(await read(reader, `/vaults/${vaultId}`))
  const content = [...state.documents, ...state.files]
  expect(items.map(({ id, name, sha256, size }) => ({ id, name, sha256, size }))).toEqual(
    content.map(({ id, name, sha256, size }) => ({ id, name, sha256, size })),
  )
  const stream = await streamOf(reader.db, vaultId)
  expectStream(stream, eventsHead)
  expect(state.eventCount).toBe(stream.length)
  expectWrites(writes, { items, stream, totals })
  totals.items += items.length
  const last = stream.at(-1)?.event
  for (const seal of seals) expect(last?.payload).toMatchObject(seal)
  const reported = sql`select count(*) as count from events where type = 'vault.sealed' and payload ->> 'vaultId' = ${vaultId}`
  expect(await countOf(reader.db, reported)).toBe(1)
}

type Stream = Awaited<ReturnType<typeof streamOf>>

/** One order without a gap, `vault.sealed` once and at its end, and the hash that the seal covers. */
function expectStream(stream: Stream, head: { readonly count: number; readonly hash: string }): void {
  expect(stream.map(({ sequence }) => sequence)).toEqual(stream.map((_, index) => index + 1))
  expect(stream.filter(({ event }) => event.type === 'vault.sealed')).toHaveLength(1)
  expect(stream.at(-1)?.event.type).toBe('vault.sealed')
  expect(eventsHeadOf(stream.slice(0, -1).map(({ event }) => JSON.parse(JSON.stringify(event))))).toEqual(head)
}

function expectWrites(
  writes: Life['writes'],
  {
    items,
    stream,
    totals,
  }: {
    readonly items: readonly { readonly id: string; readonly name: string; readonly sha256: string }[]
    readonly stream: Stream
    readonly totals: LifeTotals
  },
): void {
  const inVault = new Map<string, { id: string; sha256: string | undefined }>()
  for (const { id, name, sha256 } of items) inVault.set(name, { id, sha256 })
  for (const { event } of stream)
    if (event.type.startsWith('event-')) inVault.set(event.type, { id: event.eventId, sha256: undefined })
  // One name was sent once or, with its key, until it was answered: a duplicate means that it was stored twice.
  const emitted = stream.filter(({ event }) => event.type.startsWith('event-')).length
  expect(inVault.size).toBe(items.length + emitted)
  for (const { name, id, sha256, refusal, wasBeforeSeal } of writes) {
    const kept = inVault.get(name)
    inVault.delete(name)
    if (id !== undefined) {
      expect([name, kept?.id, wasBeforeSeal]).toEqual([name, id, true])
      if (sha256 !== undefined) expect(kept?.sha256).toBe(sha256)
      totals.acknowledged += 1
    } else if (refusal !== undefined) expect([name, refusal, kept]).toEqual([name, 'vault-sealed', undefined])
    else if (kept === undefined) totals.unansweredGone += 1
    else totals.unansweredKept += 1
  }
  expect([...inVault.keys()], 'nothing is there that was not sent').toEqual([])
}

const Usage = z.object({ storageBytes: z.object({ used: z.number() }), activeVaults: z.object({ used: z.number() }) })

/** The counters agree with a recount and with the sum of the rows. */
export async function expectCounters(reader: Reader): Promise<void> {
  const counted = Usage.parse(await read(reader, '/billing/usage'))
  await read(reader, '/billing/rebuild-cache', 'POST')
  expect(Usage.parse(await read(reader, '/billing/usage'))).toEqual(counted)
  const bytes = await countOf(reader.db, sumOfAll)
  expect(counted.storageBytes.used).toBe(bytes)
  expect(counted.activeVaults.used).toBe(
    await countOf(reader.db, sql`select count(*) as count from vaults where counted_as = 'active'`),
  )
}

/** Contents of deleted vaults do not count while they wait for their deletion. */
const isThere = sql`vault_id in (select id from vaults)`
const sumOfAll = sql`select ((select coalesce(sum(size), 0) from vault_documents where ${isThere}) + (select coalesce(sum(size), 0) from vault_files where ${isThere})
  + (select coalesce(sum(size), 0) from vault_events where ${isThere}))::bigint as count`

/** As if what the kills left behind were two hours old. */
export async function makeUploadsOld({ db, env }: Pick<Reader, 'db' | 'env'>): Promise<void> {
  await db.run(sql`update vault_uploads set created_at = created_at - interval '2 hours'`)
  const partial = path.join(env.FILES_DIR ?? '', 'partial')
  for (const name of readdirSync(partial)) {
    const [started = '', rest = ''] = name.split('-')
    renameSync(path.join(partial, name), path.join(partial, `${Number(started) - 7_200_000}-${rest}`))
  }
}

/** What is still to be swept: recorded uploads, blobs to delete, and partial files on the disk. */
export async function leftToSweep({ db, env }: Pick<Reader, 'db' | 'env'>): Promise<number> {
  const rows = await countOf(
    db,
    sql`select (select count(*) from vault_uploads) + (select count(*) from blob_deletions) + (select count(*) from deleted_vaults) as count`,
  )
  return rows + filesIn(path.join(env.FILES_DIR ?? '', 'partial'))
}

/** Each file has its blob, and there are no other blobs. */
export async function expectBlobs({ db, env }: Pick<Reader, 'db' | 'env'>): Promise<number> {
  const stored = filesIn(path.join(env.FILES_DIR ?? '', 'blobs'))
  expect(stored).toBe(await countOf(db, sql`select count(*) as count from vault_files`))
  return stored
}

function filesIn(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length
}
