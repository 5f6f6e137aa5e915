import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { openManually } from '../../../../test/manual-line.ts'
import { rowsRead } from '../../../../test/rows-read.ts'
import { toyDeps } from '../../../../test/toy-deps.ts'
import { type Db, sql, type Tx } from '../../../platform/db/db.ts'
import { createFairDb } from '../../../platform/db/fair-db.ts'
import type { SseConnection } from '../../../platform/event-streams/response.ts'
import { findStart, listNews, listPageAfter } from './store.ts'
import { VaultStreams } from './streams.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values (${tenant.organisationId}, 'Acme', 'team', 'pro', now())`,
  )
})
afterAll(() => database.drop())

const expiresAt = new Date('2999-01-01T00:00:00Z')
const vaultId = 'vlt_01h455vb4pex5vsknk084sn02q'
const followedId = 'vlt_01h455vb4pex5vsknk084sn06q'
const tenant = { organisationId: 'org_1', environment: 'test' } as const

/** A page of a replay that was requested, and what returns it. */
interface Waiting {
  readonly organisationId: unknown
  readonly finish: () => void
}

/** A database whose reads of pages wait until the test finishes them, each with one event. */
function waitingPages(): { readonly db: Db; readonly waiting: Waiting[] } {
  const waiting: Waiting[] = []
  let sequence = 0
  const many: Db['many'] = (row, { values }) =>
    new Promise((resolve) => {
      const finish = (): void => {
        sequence += 1
        const id = `evt_${String(sequence).padStart(26, '0')}`
        const event = { sequence: 1, id, type: 'step', payload: '{}', createdAt: new Date(0) }
        resolve([row.parse(event)])
      }
      waiting.push({ organisationId: values.find((value) => String(value).startsWith('org_')), finish })
    })
  return { db: { ...database.db, many }, waiting }
}

function aProcess({ db, connectionsMax }: { readonly db: Db; readonly connectionsMax: number }) {
  const fairDb = createFairDb(connectionsMax)
  const streams = new VaultStreams({ ...toyDeps(db), fairDb, endedReaders: async () => [] })
  onTestFinished(() => streams.stop())
  const open = (number: number, owner = `acc_${number}`) => {
    const opening = { tenant: { ...tenant, organisationId: `org_${number}` }, owner, vaultId, after: 0 } as const
    const live = streams.respond({ ...opening, right: { kind: 'guest', expiresAt } }, 1, Buffer.from(''))
    live.open(new QuickLine(live.closed))
  }
  return { fairDb, streams, open }
}

/** A connection whose reader reads everything at once, until it has an event. */
class QuickLine implements SseConnection {
  readonly waiting = 0
  isOpen = true
  readonly #closed: () => void

  constructor(closed: () => void) {
    this.#closed = closed
  }

  write(bytes: Uint8Array): void {
    if (Buffer.from(bytes).includes('data: ')) this.end()
  }

  drained(): Promise<void> {
    return Promise.resolve()
  }

  end(): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#closed()
  }

  cut(): void {
    this.end()
  }
}

test('the replays of one owner read as many pages at once as its share, and those of another come in turn', async () => {
  const { db, waiting } = waitingPages()
  const { open } = aProcess({ db, connectionsMax: 64 })
  for (let count = 0; count < 200; count++) open(1)
  await turn()
  expect(waiting).toHaveLength(4)
  for (let count = 0; count < 200; count++) open(2)
  await turn()
  expect(waiting.map(({ organisationId }) => organisationId)).toEqual([...Array(4).fill('org_1'), 'org_2', 'org_2'])
  const served: unknown[] = []
  while (waiting.length > 0) {
    const page = waiting.shift()
    served.push(page?.organisationId)
    page?.finish()
    await turn()
    expect(waiting.length).toBeLessThanOrEqual(8)
  }
  expect(served.filter((one) => one === 'org_2')).toHaveLength(200)
  expect(served.slice(0, 100).filter((one) => one === 'org_2').length).toBeGreaterThan(30)
})

test('past events cost their caller a token for each 64 KiB, and none are read while the caller has used up its limits', async () => {
  let [read, paid, isInDebt] = [0, 0, false]
  const payload = JSON.stringify({ text: 'x'.repeat(65_536) })
  const many: Db['many'] = async (row) => {
    read += 1
    const id = `evt_${String(read).padStart(26, '0')}`
    return [row.parse({ sequence: read, id, type: 'step', payload, createdAt: new Date(0) })]
  }
  const { streams } = aProcess({ db: { ...database.db, many }, connectionsMax: 8 })
  const charges = {
    owe: (cost: number): number => {
      paid += cost
      isInDebt = paid > 3
      return isInDebt ? 600 : 0
    },
    takeOverdue: () => false,
  }
  const line = openManually(
    streams.respond(
      { tenant, owner: 'acc_1', vaultId, after: 0, right: { kind: 'guest', expiresAt }, charges },
      100,
      Buffer.from(''),
    ),
  )
  await expect.poll(() => isInDebt).toBe(true)
  await turn()
  expect(read).toBeGreaterThan(2)
  expect(read).toBeLessThan(6)
  line.cut()
})

test('new events are sent after the last page of past ones, although the caller has used up its limits', async () => {
  await insertVault(followedId, 2)
  const payload = JSON.stringify({ text: 'x'.repeat(70_000) })
  const insert = (sequence: number) =>
    database.db.run(sql`
      insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
      values (${followedId}, ${sequence}, ${`evt_${String(sequence).padStart(26, '0')}`}, ${tenant.organisationId}, ${tenant.environment}, 'step', ${payload}, 70_100, now())`)
  await insert(1)
  const { streams } = aProcess({ db: database.db, connectionsMax: 8 })
  const charges = { owe: () => 600, takeOverdue: () => false }
  const opening = {
    tenant,
    owner: 'acc_1',
    vaultId: followedId,
    after: 0,
    right: { kind: 'guest', expiresAt },
  } as const
  const line = openManually(streams.respond({ ...opening, charges }, 1, Buffer.from('')))
  const sent = () => line.written.join('').match(/(?<=^id: ).*$/gm)?.length
  await expect.poll(sent).toBe(1)
  await insert(2)
  streams.wake(followedId)
  await expect.poll(sent).toBe(2)
})

test('a replay reads with a connection of its owner’s share, and waits while the owner’s requests have all of it', async () => {
  const { db, waiting } = waitingPages()
  const { fairDb, open } = aProcess({ db, connectionsMax: 8 })
  const locked = Promise.withResolvers<void>()
  const requests = Array.from({ length: 4 }, () => fairDb(db, 'acc_1').tx(() => locked.promise))
  await turn()
  open(1)
  open(2)
  await turn()
  expect(waiting.map(({ organisationId }) => organisationId)).toEqual(['org_2'])
  locked.resolve()
  await Promise.all(requests)
  await turn()
  expect(waiting.map(({ organisationId }) => organisationId)).toEqual(['org_2', 'org_1'])
  for (const { finish } of waiting) finish()
})

/** Pieces of values that the transaction has read which the table of events stores outside its rows. */
async function piecesRead(tx: Tx): Promise<number> {
  const { pieces } = await tx.one(
    z.object({ pieces: z.bigint() }),
    sql`
    select coalesce(idx_tup_fetch, 0)::bigint as pieces from pg_stat_xact_sys_tables
    where relid = (select reltoastrelid from pg_class where oid = 'vault_events'::regclass)`,
  )
  return Number(pieces)
}

async function insertVault(vaultId: string, eventCount: number): Promise<void> {
  await database.db.run(sql`
    insert into vaults (id, organisation_id, environment, description, metadata, event_count, event_hash, event_at, counted_as, expires_at, created_at)
    values (${vaultId}, ${tenant.organisationId}, ${tenant.environment}, '', '{}', ${eventCount}, '', now(), 'active', ${expiresAt}, now())`)
}

test('a page of a replay reads the payloads that it returns, and none of the events after them', async () => {
  const { db } = database
  await insertVault(vaultId, 200)
  // Text that does not compress, so that each payload is in eight or nine pieces of 2 KB.
  await db.run(sql`
    insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
    select ${vaultId}, n, 'evt_' || lpad(n::text, 26, '0'), ${tenant.organisationId}, ${tenant.environment}, 'step', json_build_object('text', text),
      128 + 4 + octet_length(text), now()
    from generate_series(1, 200) as n, lateral (
      select string_agg(encode(sha256(convert_to(n || '.' || part, 'utf8')), 'hex'), '') as text from generate_series(1, 250) as part
    ) as random`)
  const bounds = { after: 0, eventsMax: 200, bytesMax: 65_536 }
  await db.tx(async (tx) => {
    const before = await piecesRead(tx)
    const page = await listPageAfter(tx, tenant, { vaultId, now: new Date() }, bounds)
    expect(page.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5])
    expect((await piecesRead(tx)) - before).toBeLessThanOrEqual(5 * 9)
  })
})

test('a stream from an instant finds its first event of thousands with a few reads', async () => {
  const { db } = database
  const vaultId = 'vlt_01h455vb4pex5vsknk084sn03q'
  const [count, start] = [3_000, Date.parse('2026-03-01T00:00:00Z')]
  await insertVault(vaultId, count)
  // Two events in each second.
  await db.run(sql`
    insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, created_at)
    select ${vaultId}, n, 'evt_' || lpad(n::text, 26, '0'), ${tenant.organisationId}, ${tenant.environment}, 'step', '{}',
      ${new Date(start)}::timestamptz + (n - 1) / 2 * interval '1 second' from generate_series(1, ${count}) as n`)
  const startFrom = (ms: number) =>
    db.tx(async (tx) => {
      const before = await rowsRead(tx, '^vault_events$')
      const found = await findStart(tx, tenant, { vaultId, now: new Date() }, { instant: new Date(ms) })
      return { sequence: found?.sequence, reads: Number((await rowsRead(tx, '^vault_events$')) - before) }
    })
  const found = []
  for (const ms of [start - 1, start, start + 999, start + 1_000, start + 1_499_000, start + 9_999_000])
    found.push(await startFrom(ms))
  expect(found.map(({ sequence }) => sequence)).toEqual([0, 2, 2, 4, 3_000, 3_000])
  expect(Math.max(...found.map(({ reads }) => reads))).toBeLessThan(20)
})

test('a read of the news of many vaults ends at its limit of bytes, and the next read goes on behind it', async () => {
  const { db } = database
  const vaultIds = ['vlt_01h455vb4pex5vsknk084sn04q', 'vlt_01h455vb4pex5vsknk084sn05q'] as const
  for (const one of vaultIds) {
    await insertVault(one, 60)
    await db.run(sql`
      insert into vault_events (vault_id, sequence, id, organisation_id, environment, type, payload, size, created_at)
      select ${one}, n, 'evt_' || lpad(n::text, 26, '0'), ${tenant.organisationId}, ${tenant.environment}, 'step',
        json_build_object('text', repeat('x', 16000)), 16100, now()
      from generate_series(1, 60) as n`)
  }
  const bounds = { now: new Date(), eventsOfVaultMax: 100, rowsMax: 2_000, bytesMax: 2 ** 20 }
  const after = vaultIds.map(() => 0)
  const reads: number[] = []
  for (let read = 0; read < 3; read++) {
    const followed = vaultIds.map((vaultId, index) => ({ tenant, vaultId, sequence: after[index] ?? 0 }))
    const news = await listNews(db, followed, bounds)
    for (const { position, sequence } of news) {
      expect(sequence).toBe((after[position - 1] ?? 0) + 1)
      after[position - 1] = sequence ?? 0
    }
    reads.push(news.length)
  }
  expect(reads).toEqual([66, 54, 0])
})
