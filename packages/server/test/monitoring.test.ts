import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { showQueues } from '../src/monitoring/gauges.ts'
import { sql } from '../src/platform/db/db.ts'
import { createLog } from '../src/platform/log.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { freshDatabase } from './database.ts'
import { fillTable, statement } from './fill-table.ts'
import { openStream } from './stories/vault-stream-reader.ts'
import { listening } from './webhooks/listening.ts'
import { aWorld, type DevChain, startChain, type World } from './world.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8')
const files = ['deploy/grafana/purser.json', 'deploy/prometheus/purser.rules.yaml']

let chain: DevChain
let world: World

beforeAll(async () => {
  chain = await startChain({ network: 'base-sepolia' })
  world = await aWorld({ chains: [chain], config: { databaseConnectionsMax: connectionsMax } })
})
afterAll(async () => {
  await world?.stop()
  await chain?.stop()
})

const connectionsMax = 8

async function readMetrics(): Promise<string> {
  return (await fetch(`${world.base}/metrics`)).text()
}

/** The names of metrics in a text; the parts of a histogram count as the histogram. */
function metricsIn(text: string): readonly string[] {
  const names = text.match(/\bpurser_[a-z_]+/g) ?? []
  return [...new Set(names.map((name) => name.replace(/_(bucket|count|sum)$/, '')))]
}

test.each(files)('each metric that %s names is written by the service and is in the manual', (file) => {
  const written = globSync('packages/server/src/**/*.ts', { cwd: root })
    .flatMap((source) => read(source).match(/'purser_[a-z_]+'/g) ?? [])
    .map((quoted) => quoted.slice(1, -1))
  const named = metricsIn(read(file))
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter((name) => !written.includes(name))).toEqual([])
  expect(named.filter((name) => !metricsIn(read('docs/operations.md')).includes(name))).toEqual([])
})

/** Three rows of each queue, ten minutes old, in tables that nobody works on. */
const waiting = `now() - interval '10 minutes'`
const queues: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  'queue="payments",network="base-sepolia"': {
    payments: { network: `'base-sepolia'`, status: `'settling'`, created_at: waiting },
  },
  'queue="relays",network="base-sepolia"': {
    relays: { network: `'base-sepolia'`, state: `'waiting'`, created_at: waiting },
  },
  'queue="settler-transactions",network="base-sepolia"': {
    chain_transactions: { network: `'base-sepolia'`, status: `'sent'`, purpose: `'relays'`, created_at: waiting },
  },
  'queue="wallet-transactions",network="base-sepolia"': {
    chain_transactions: { network: `'base-sepolia'`, status: `'sent'`, purpose: `'transfer'`, created_at: waiting },
  },
  'queue="events",network=""': { events: { created_at: waiting }, events_due: {} },
  'queue="webhooks",network=""': { webhook_queues: { look_at: waiting } },
  'queue="files",network=""': { blob_deletions: { due_at: waiting } },
  'queue="unknown-transfers",network="base-sepolia"': {
    transfers: { from_network: `'base-sepolia'`, unknown_at: waiting },
  },
  'queue="unused-payments",network=""': { wallet_payments: { pay_until: waiting } },
  'queue="deleted-organisations",network=""': {
    wallet_transactions: { created_at: waiting, raw_amount: '1000000', decimals: '6' },
    organisations: { deleted_at: `now() - interval '1 day'` },
    late_deposits: {},
  },
}

test.each(Object.entries(queues))(
  '{%s} shows how many items wait and since when, and nothing once they are gone',
  async (labels, tables) => {
    const { db, drop } = await freshDatabase()
    onTestFinished(drop)
    const metrics = createMetrics()
    const lines = async (): Promise<readonly string[]> => {
      await showQueues({ db, metrics, log: createLog({ level: 'silent' }) })
      return (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('purser_queue_'))
    }
    expect(await lines()).toEqual([])
    for (const [table, own] of Object.entries(tables)) await fillTable(db, table, own, { last: 3 })
    const [depth, age = '', ...others] = await lines()
    expect([depth, others]).toEqual([`purser_queue_depth{${labels}} 3`, []])
    expect(age.startsWith(`purser_queue_age_seconds{${labels}} 6`), age).toBe(true)
    for (const table of Object.keys(tables)) await db.run(statement(`delete from ${table}`))
    expect(await lines()).toEqual([])
  },
)

/** The tables of the queues that each network has and that are counted for each. Payments have no index for that. */
const ofNetworks = Object.entries(queues).flatMap(([labels, { organisations, ...tables }]) =>
  labels.includes('network=""') || labels.includes('"payments"')
    ? []
    : Object.entries(tables).map(([table, own]) => ({ labels, table, own })),
)
const networkColumn = (own: Readonly<Record<string, string>>) => ('from_network' in own ? 'from_network' : 'network')
const timeColumn = (own: Readonly<Record<string, string>>) => ('unknown_at' in own ? 'unknown_at' : 'created_at')

test.each(ofNetworks)(
  'a long queue of one network hides no other network and not its own oldest item: {$labels}',
  async ({ labels, table, own }) => {
    const { db, drop } = await freshDatabase()
    onTestFinished(drop)
    const [network, time] = [networkColumn(own), timeColumn(own)]
    const rowsOf = (name: string, age: string, first: number, last: number) =>
      fillTable(db, table, { ...own, [network]: `'${name}'`, [time]: `now() - interval '${age}'` }, { first, last })
    await rowsOf('base', '1 minute', 1, 12_000)
    await rowsOf('base', '2 hours', 12_001, 12_001)
    await rowsOf('tempo', '5 hours', 12_002, 12_501)
    const queue = labels.replace(/,network.*$/, '')
    const metrics = createMetrics()
    await showQueues({ db, metrics, log: createLog({ level: 'silent' }) })
    const lines = (await metrics.registry.metrics()).split('\n').filter((line) => line.startsWith('purser_queue_'))
    const [depths, ages] = [lines.slice(0, 2), lines.slice(2)]
    expect(depths).toEqual([
      `purser_queue_depth{${queue},network="base"} 10000`,
      `purser_queue_depth{${queue},network="tempo"} 500`,
    ])
    const hours = ages.map((line) => Math.floor(Number(line.split(' ')[1]) / 3_600))
    expect(hours).toEqual([2, 5])
  },
)

test('the metrics show the balance of the settler on each network', async () => {
  await expect.poll(readMetrics).toContain('purser_settler_balance{network="base-sepolia",asset="ETH"} 100')
})

test('the metrics answer while every connection is in use, and show it with what waits', async () => {
  const { db } = world.server.deps
  const end = Promise.withResolvers<void>()
  const inUse = Array.from({ length: connectionsMax + 2 }, () =>
    db.tx(async (tx) => {
      await tx.run(sql`select 1`)
      await end.promise
    }),
  )
  await expect.poll(() => db.pool?.().waiting).toBeGreaterThanOrEqual(2)
  const text = await readMetrics()
  expect(text).toContain(`purser_db_pool_connections{state="in_use"} ${connectionsMax}`)
  expect(text).toContain('purser_db_pool_connections{state="idle"} 0')
  expect(text).toContain(`purser_db_pool_connections_max ${connectionsMax}`)
  expect(Number(/purser_db_pool_waiting\{reason="connection"\} (\d+)/.exec(text)?.[1])).toBeGreaterThanOrEqual(2)
  end.resolve()
  await Promise.all(inUse)
})

test('the metrics show what waits for a place in the share of its account', async () => {
  const { db, fairDb } = world.server.deps
  const own = fairDb(db, 'org_that_waits')
  const end = Promise.withResolvers<void>()
  const inUse = Array.from({ length: connectionsMax }, () => own.tx(() => end.promise))
  const waits = fairDb.waiting()
  expect(waits).toBeGreaterThan(0)
  expect(await readMetrics()).toContain(`purser_db_pool_waiting{reason="share"} ${waits}`)
  end.resolve()
  await Promise.all(inUse)
  expect(await readMetrics()).toContain('purser_db_pool_waiting{reason="share"} 0')
})

test('the metrics show the open streams, and those of the account that has the most', async () => {
  const [many, one] = [await world.organisation(), await world.organisation()]
  const streams = await Promise.all(
    [many, many, one].map(async ({ testKey }) => {
      const { id } = (await world.call(testKey, 'POST', '/vaults', {})).body
      return openStream(world.base, String(id), { key: testKey })
    }),
  )
  const listeners = [many, many, one].map(({ testKey }) => listening(world.base, testKey))
  await Promise.all(listeners.map(({ opened }) => opened))
  const text = await readMetrics()
  for (const name of ['purser_vault_streams', 'purser_listeners']) {
    expect(text).toMatch(new RegExp(`^${name} 3$`, 'm'))
    expect(text).toMatch(new RegExp(`^${name}_largest_share 2$`, 'm'))
    expect(text).toMatch(new RegExp(`^${name}_max \\d{4,}$`, 'm'))
  }
  for (const listener of listeners) await listener.stop()
  for (const stream of streams) stream.leave()
  await expect.poll(readMetrics).toMatch(/^purser_vault_streams_largest_share 0$/m)
  await expect.poll(readMetrics).toMatch(/^purser_listeners_largest_share 0$/m)
})
