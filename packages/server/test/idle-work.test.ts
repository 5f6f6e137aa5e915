import { type DevChain, startChain } from '@purser/devnet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { countNextQuarter, markQuarters } from '../src/features/payments/rollups/rollup-store.ts'
import { sql } from '../src/platform/db/db.ts'
import { freshDatabase, type TestDatabase } from './database.ts'
import { fillTable } from './fill-table.ts'
import { createFakeScreening } from './screening-double.ts'
import { aWorld, type World } from './world.ts'

// A long history without open work, and a service that idles on it.
/** More than the pages of a thousand that nineteen runs of a walk over old rows read. */
const rowsMax = 30_000
let chain: DevChain
let database: TestDatabase
let world: World | undefined

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  database = await freshDatabase()
})
afterAll(async () => {
  await (world ?? { stop: database.drop }).stop()
  await chain?.stop()
})

/**
 * Tables that grow with use, and their rows in a final state. Omitted columns get any allowed value of their type: idle
 * work must never read these rows.
 */
const history: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  payments: {
    network: `'base-sepolia'`,
    status: `(array['settled', 'voided', 'settlement_failed'])[n % 3 + 1]`,
    session_id: `'ses_' || n`,
    session_revoked: 'true',
    settled_at: 'now()',
  },
  sessions: { revoked_at: 'now()' },
  relays: { network: `'base-sepolia'`, state: `'settled'`, purpose: `'payments'` },
  chain_transactions: { network: `'base-sepolia'`, status: `'final'`, nonce: 'n' },
  transaction_attempts: { sequence: '0' },
  wallet_transactions: {
    network: `'base-sepolia'`,
    direction: `'in'`,
    kind: `'transfer'`,
    status: `'confirmed'`,
    aml_status: `'clear'`,
    aml_due_at: `'infinity'`,
    // Below the blocks of the chain: the watcher compares rows with the hash of each block that it reads.
    block_number: '-1',
  },
  transfers: { ended_at: 'now()', status: `'confirmed'`, from_network: `'base-sepolia'` },
  transfer_steps: { done_at: 'now()', kind: `'transfer'`, position: '0' },
  sweeps: { network: `'base-sepolia'`, status: `'completed'`, trigger: `'automatic'` },
  sweep_transfers: { network: `'base-sepolia'`, status: `'swept'` },
  withdrawals: { status: `'completed'` },
  movement_approvals: { status: `'refused'`, decided_at: 'now()', applied_at: 'now()' },
  events: {},
  byo_wallets: { aml_status: `'clear'`, aml_due_at: `now() + interval '1 day'` },
  child_addresses: {},
  idempotency_keys: { created_at: `now() - interval '1 hour'` },
  webhook_deliveries: { status: `'succeeded'`, ended_at: 'now()' },
  vaults: { expires_at: `now() + interval '1 year'` },
  vault_documents: {},
  vault_events: {},
  vault_files: {},
  vault_tokens: { expires_at: `now() + interval '1 year'` },
  screenings: {},
  audit_log: {},
  transfer_quotes: { expires_at: `now() + interval '1 year'` },
}

const Reads = z.object({ name: z.string(), scans: z.bigint(), rows: z.bigint() })

/** The rows of each table, with its partitions, that sequential scans and indexes have read. */
async function readsOf(): Promise<Map<string, z.output<typeof Reads>>> {
  const rows = await database.db.many(
    Reads,
    sql`select coalesce(p.relname, s.relname)::text as name, sum(coalesce(seq_tup_read, 0))::bigint as scans, sum(coalesce(idx_tup_fetch, 0))::bigint as rows
      from pg_stat_user_tables s left join pg_inherits i on i.inhrelid = s.relid left join pg_class p on p.oid = i.inhparent
      where coalesce(p.relname, s.relname) = any(${Object.keys(history)}::text[]) group by 1`,
  )
  return new Map(rows.map((row) => [row.name, row]))
}

/** Runs of a loop without a condition, in whose five seconds the probe looks sixty times for the others. */
const runsOf = async ({ server }: World): Promise<number> => {
  const text = await server.deps.metrics.registry.metrics()
  const counts = [...text.matchAll(/purser_tasks_total\{task="wallets\.follow-sanctions",outcome="done"\} (\d+)/g)]
  return Number(counts[0]?.[1] ?? 0)
}

test('a service that idles on a long history scans none of its tables, whatever it looks for', async () => {
  for (const [table, own] of Object.entries(history)) await fillTable(database.db, table, own, { last: rowsMax })
  // The payments of the past are counted once.
  await markQuarters(database.db)
  while (await countNextQuarter(database.db));
  await database.db.run(sql`select pg_stat_force_next_flush()`)
  const before = await readsOf()
  // Started on the filled database: the scans of a service that met empty tables would be reported up to ten seconds late.
  const idle = await aWorld({
    database,
    chains: [chain],
    rpcUrls: { 'tempo-moderato': ['http://127.0.0.1:1'] },
    boot: { screening: createFakeScreening(() => new Date()), depositPollMsMax: 200, probe: undefined },
  })
  world = idle
  for (let run = 0; run < 19; run++) for (const task of idle.server.loops) await task.run()
  const begun = await runsOf(idle)
  // Named statements get their general plans after five runs. Meanwhile lanes, relayer, watcher and webhooks look for work too.
  await expect.poll(() => runsOf(idle), { timeout: 60_000 }).toBeGreaterThan(begun + 2)
  // A connection that closes reports all its scans.
  await idle.server.stop()
  const after = await readsOf()
  const read = [...after.values()].filter(({ name, scans, rows }) => {
    const was = before.get(name)
    // Every loop ran nineteen times or more, and the probe more often. A look at the newest 200 rows now and then is work of a bounded size.
    return scans > (was?.scans ?? 0n) || rows - (was?.rows ?? 0n) >= rowsMax
  })
  expect(read).toEqual([])
  expect(after.size).toBe(Object.keys(history).length)
})
