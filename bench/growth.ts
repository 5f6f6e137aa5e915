import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { newTypeId } from '../packages/protocol/src/typeid.ts'
import { type Db, openDb, sql } from '../packages/server/src/platform/db/db.ts'
import { createLog } from '../packages/server/src/platform/log.ts'
import type { Closing } from './closing.ts'
import { figure, quantile, sum, table } from './figures.ts'
import { type Ground, startGround } from './ground.ts'
import { fillGrowth, listSizes, type Owner, prepareGrowth, rollUp } from './growth-fill.ts'
import { getRequest, postRequest, runLoad } from './load.ts'
import { parseObject } from './parse.ts'
import { signPayments } from './payments.ts'
import { type PurserSide, startHome, startPurser } from './sides.ts'

export interface GrowthPlan {
  readonly payments: number
  /** Requests of each kind, one after another. */
  readonly repeats: number
  /** Milliseconds for which the idle service is watched. */
  readonly idleMs: number
}

export const fullGrowth: GrowthPlan = { payments: 2_000_000, repeats: 100, idleMs: 20_000 }
export const quickGrowth: GrowthPlan = { payments: 100_000, repeats: 40, idleMs: 5_000 }

const ratioMax = 5
/** A statement that ran only once, with a cold cache, counts as unchanged below this time. */
const onlyRunMsMax = 20
/** Payments of the small database: a page of every list is full there too. */
const smallPayments = 1_000
/** Days in which the payments of a full page were made there; on the filled database it is one. */
const smallPageDays = 10
/** A background statement below this time is fast enough, whatever its ratio to the small database. */
const statementMsMin = 1
const idlePerSecondMax = 20
const requestMsMax = 240_000

interface Figures {
  readonly p50: number
  readonly p99: number
  /** Blocks of tables and indexes that PostgreSQL read for one request: other work on the machine does not change them. */
  readonly blocks: number
}

/**
 * Measures every list, filter, summary, verify and the idle service's statements on a small database and on a filled
 * one. Returns the number that became more than five times slower, plus the number of wrong responses.
 */
export async function benchGrowth(plan: GrowthPlan, closing: Closing): Promise<number> {
  const ground = await startGround()
  closing.add(() => ground.chain.stop())
  const home = await startHome({
    shared_preload_libraries: 'pg_stat_statements',
    'pg_stat_statements.track_utility': 'off',
    max_wal_size: '4GB',
  })
  closing.add(() => home.stop())
  const db = openDb({
    url: home.postgres.url,
    connectionsMax: 2,
    statementTimeoutMs: 0,
    log: createLog({ level: 'warn' }),
  })
  closing.add(() => db.close())
  await db.run(sql`create extension if not exists pg_stat_statements`)

  const smallSide = await startPurser(ground, home)
  const stop = closing.add(() => smallSide.child.stop())
  const owner = await ownerAt(smallSide, db, home.walletId ?? '')
  await prepareGrowth(db)
  await fillGrowth(db, owner, smallPayments)
  await rollUp(db)
  const smallIdle = await watchIdle(db, plan.idleMs)
  const small = await measureAll(plan, db, ground, { side: smallSide, owner, pageDays: smallPageDays })
  await stop()

  const before = sum((await listSizes(db)).map(({ bytes }) => Number(bytes)))
  const began = performance.now()
  await fillGrowth(db, owner, plan.payments)
  console.log(`\nfilled in ${figure((performance.now() - began) / 1_000)} s`)
  const filled = sum((await listSizes(db)).map(({ bytes }) => Number(bytes)))
  console.log(`rolled up in ${figure(await rollUp(db))} s`)
  const sizes = await listSizes(db)
  await db.run(sql`select pg_stat_statements_reset()`)
  const fullSide = await startPurser(ground, home)
  closing.add(() => fullSide.child.stop())
  const fullIdle = await watchIdle(db, plan.idleMs)
  const full = await measureAll(plan, db, ground, { side: fullSide, owner, pageDays: 1 })

  const bytes = sum(sizes.map((size) => Number(size.bytes))) - before
  console.log(`\n${plan.payments.toLocaleString('en-US')} payments and what belongs to them, ms\n`)
  console.log(requestsTable(small, full))
  console.log(`\n  background work on the filled database: statements by their total time\n`)
  console.log(idleTable(smallIdle, fullIdle))
  console.log(`\n  idle: ${figure(fullIdle.perSecond)} statements/s, at most ${idlePerSecondMax}`)
  console.log(
    `  ${figure(bytes / plan.payments)} bytes for each payment with what belongs to it: ${sizes
      .slice(0, 6)
      .map((size) => `${size.name} ${figure(Number(size.bytes) / plan.payments)}`)
      .join(', ')}`,
  )
  console.log(
    `  ${figure((filled - before) / plan.payments)} bytes before the signed bytes of what ended a week ago were dropped`,
  )
  const slower = [...full].filter(([name, { p50 }]) => p50 / (small.get(name)?.p50 ?? p50) > ratioMax)
  const slowLoops = fullIdle.statements.filter((one) => ratioOf(one, smallIdle) > ratioMax)
  return slower.length + slowLoops.length + (fullIdle.perSecond > idlePerSecondMax ? 1 : 0)
}

/** The ids of the measured organisation; makes its webhook. */
async function ownerAt({ port, headers }: PurserSide, db: Db, walletId: string): Promise<Owner> {
  const hook = postRequest(
    '/webhooks',
    JSON.stringify({ url: 'http://127.0.0.1:9/hook', events: ['vault.sealed'] }),
    headers,
  )
  const { responses } = await runLoad({
    port,
    connections: 1,
    requests: [getRequest('/organisations/current', headers), hook],
    msMax: requestMsMax,
  })
  const [organisation, webhook] = responses.map(({ body }) => parseObject(body))
  const organisationId = String(organisation?.id)
  const { apiKeyId } = await db.one(
    z.object({ apiKeyId: z.string() }),
    sql`select id as api_key_id from api_keys where organisation_id = ${organisationId} and environment = 'test' limit 1`,
  )
  return { organisationId, apiKeyId, walletId, webhookId: String(webhook?.id) }
}

/** The requested paths by the names of the table. Cursors lead far back. `pageDays`: in how many days the payments of a full page were made. */
function pathsOf({ walletId, webhookId, apiKeyId }: Owner, pageDays: number): Readonly<Record<string, string>> {
  const day = 86_400_000
  const ago = (count: number) => Date.now() - count * day
  const from = (count: number) => new Date(ago(count)).toISOString()
  const deep = (prefix: string, count: number) =>
    `cursor=${Buffer.from(newTypeId(prefix, ago(count), new Uint8Array(10))).toString('base64url')}`
  const longAgo = `from=${from(80)}&to=${from(79)}`
  const transactions = `/wallet-infra/byo-wallets/${walletId}/transactions`
  return {
    'logs: first page': '/payments/logs',
    'logs: deep page': `/payments/logs?${deep('plog', 80)}`,
    'logs: route': '/payments/logs?route=/reports/7',
    'logs: route, no match': '/payments/logs?route=/none',
    'logs: protocol, no match': '/payments/logs?protocol=mpp',
    'logs: status, no match': '/payments/logs?status=settlement_failed',
    'logs: status': '/payments/logs?status=voided',
    'logs: chain, no match': '/payments/logs?chain=ethereum',
    'logs: payer, no match': '/payments/logs?payer=0x552008c0f6870c2f77e5cC1d2eb9bdff03e30Ea0',
    'logs: wallet, no match': '/payments/logs?walletId=byw_01h455vb4pex5vsknk084sn02q',
    'logs: key': `/payments/logs?apiKeyId=${apiKeyId}`,
    'logs: key, no match': '/payments/logs?apiKeyId=key_01h455vb4pex5vsknk084sn02q',
    'logs: a full page, long ago': `/payments/logs?from=${from(80)}&to=${from(80 - pageDays)}`,
    'logs: before there were any': `/payments/logs?to=${from(200)}`,
    'logs: route and day, no match': `/payments/logs?route=/none&${longAgo}`,
    'summary: all': '/payments/logs/summary',
    'summary: one day': `/payments/logs/summary?${longAgo}`,
    'summary: route, no match': '/payments/logs/summary?route=/none',
    'statistics: route, no match': `/payments/statistics?${longAgo}&interval=hour&route=/none`,
    'statistics: one day': `/payments/statistics?${longAgo}&interval=hour`,
    'events: first page': '/events',
    'events: deep page': `/events?${deep('evt', 25)}`,
    'events: type, no match': '/events?type=vault.sealed',
    'events: a day, long ago': `/events?from=${from(25)}&to=${from(24)}`,
    'transactions: first page': transactions,
    'transactions: deep page': `${transactions}?${deep('wtx', 80)}`,
    'transactions: out, none': `${transactions}?direction=out`,
    'transactions: token, none': `${transactions}?token=EURC`,
    'transactions: chain, none': `${transactions}?chain=base`,
    'transfers: first page': '/wallet-infra/transfers',
    'transfers: wallet, no match': '/wallet-infra/transfers?fromWalletId=mwt_01h455vb4pex5vsknk084sn02q',
    'transfers: status, none': '/wallet-infra/transfers?status=failed',
    'transfers: a day, long ago': `/wallet-infra/transfers?${longAgo}`,
    'transfers: metadata of all': '/wallet-infra/transfers?metadata.batch=nightly',
    'transfers: metadata, deep page': `/wallet-infra/transfers?metadata.batch=nightly&${deep('wtx', 80)}`,
    'transfers: metadata, no match': '/wallet-infra/transfers?metadata.batch=never',
    'vaults: first page': '/vaults',
    'vaults: status, none': '/vaults?status=sealed',
    'sessions: first page': '/sessions',
    'withdrawals: first page': '/wallet-infra/withdrawals',
    'withdrawals: metadata, no match': '/wallet-infra/withdrawals?metadata.batch=never',
    'attempts: first page': `/webhooks/${webhookId}/attempts`,
    'attempts: deep page': `/webhooks/${webhookId}/attempts?${deep('att', 25)}`,
    'attempts: status, none': `/webhooks/${webhookId}/attempts?status=failed`,
    'attempts: a day, long ago': `/webhooks/${webhookId}/attempts?from=${from(25)}&to=${from(24)}`,
    'audit log: action, no match': '/organisations/current/audit-log?action=wallets.pay',
    'audit log: actor, no match': '/organisations/current/audit-log?actor=key_01h455vb4pex5vsknk084sn02q',
    'audit log: target, no match': '/organisations/current/audit-log?target=pay_01h455vb4pex5vsknk084sn02q',
    'requests: first page': '/requests',
    'requests: status, none': '/requests?status=418',
    'approvals: status, none': '/approvals?status=refused',
    'routes: first page': '/registry/routes',
    'routes: host, no match': '/registry/routes?host=none.example.com',
    'routes: most that they cost': '/registry/routes?maxAmount=0.01',
    'routes: words, no match': '/registry/routes?q=nothing',
    'resources of the facilitator': '/facilitator/discovery/resources',
    'webhooks: first page': '/webhooks',
    'keys: first page': '/organisations/current/api-keys',
    'members: first page': '/organisations/current/members',
    'wallets: first page': '/wallet-infra/byo-wallets',
    'audit log: first page': '/organisations/current/audit-log',
    'audit log: deep page': `/organisations/current/audit-log?cursor=${Buffer.from('1001').toString('base64url')}`,
    usage: '/billing/usage',
  }
}

async function measureAll(
  plan: GrowthPlan,
  db: Db,
  ground: Ground,
  { side, owner, pageDays }: { readonly side: PurserSide; readonly owner: Owner; readonly pageDays: number },
): Promise<ReadonlyMap<string, Figures>> {
  const results = new Map<string, Figures>()
  const take = async (name: string, requests: readonly Buffer[]): Promise<void> => {
    const before = await blocksRead(db)
    const { responses } = await runLoad({ port: side.port, connections: 1, requests, msMax: requestMsMax })
    const blocks = Number((await blocksRead(db)) - before) / responses.length
    const wrong = responses.find(({ status }) => status !== 200)
    if (wrong !== undefined) throw new Error(`${name}: ${wrong.status} ${wrong.body.slice(0, 300)}`)
    const ms = responses.slice(Math.min(8, responses.length - 1)).map((response) => response.ms)
    results.set(name, { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), blocks })
  }
  for (const [name, path] of Object.entries(pathsOf(owner, pageDays))) {
    await take(
      name,
      Array.from({ length: plan.repeats }, () => getRequest(path, side.headers)),
    )
  }
  const rebuild = postRequest('/billing/rebuild-cache', '{}', side.headers)
  await take(
    'rebuild-cache',
    Array.from({ length: 20 }, () => rebuild),
  )
  await take('verify', signPayments(ground.payers, ground.bill, plan.repeats).map(side.verifyRequest))
  return results
}

/** Blocks of tables and indexes that all statements have read. */
async function blocksRead(db: Db): Promise<bigint> {
  const { blocks } = await db.one(
    z.object({ blocks: z.bigint() }),
    sql`select coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint as blocks from pg_stat_statements`,
  )
  return blocks
}

function requestsTable(small: ReadonlyMap<string, Figures>, full: ReadonlyMap<string, Figures>): string {
  const rows = [...full].map(([name, after]) => {
    const before = small.get(name) ?? after
    const ms = [before.p50, before.p99, after.p50, after.p99, after.p50 / before.p50]
    return [name, ...ms, before.blocks, after.blocks, after.blocks / before.blocks].map((cell) =>
      typeof cell === 'number' ? figure(cell) : cell,
    )
  })
  return table(
    ['', 'small p50', 'p99', 'full p50', 'p99', 'ratio of p50', 'small blocks', 'full blocks', 'ratio of blocks'],
    rows,
  )
}

const Statement = z.object({
  id: z.string(),
  query: z.string(),
  calls: z.bigint(),
  minMs: z.number(),
  meanMs: z.number(),
  maxMs: z.number(),
})
type Statement = z.output<typeof Statement>

interface Idle {
  readonly statements: readonly Statement[]
  readonly perSecond: number
}

/** The statements that a service without requests runs: at its start, and per second after its first runs. */
async function watchIdle(db: Db, ms: number): Promise<Idle> {
  const read = () =>
    db.many(
      Statement,
      sql`select queryid::text as id, query, sum(calls)::bigint as calls, min(min_exec_time) as min_ms, sum(total_exec_time) / sum(calls) as mean_ms, max(max_exec_time) as max_ms
        from pg_stat_statements where query not like '%pg_stat_statements%' group by queryid, query
        order by sum(total_exec_time) desc`,
    )
  const callsOf = (statements: readonly Statement[]) => sum(statements.map(({ calls }) => Number(calls)))
  await delay(ms)
  const began = performance.now()
  const first = callsOf(await read())
  await delay(ms)
  const statements = await read()
  return { statements, perSecond: (callsOf(statements) - first) / ((performance.now() - began) / 1_000) }
}

/**
 * Returns the factor by which a statement became slower, by its fastest run: the first runs after a start read what no other run has in memory. Those
 * that stay fast count as unchanged, and so does one that ran only once and took less than `onlyRunMsMax`.
 */
function ratioOf({ id, minMs, calls }: Statement, before: Idle): number {
  if (calls === 1n && minMs < onlyRunMsMax) return 1
  const was = before.statements.find((one) => one.id === id)?.minMs ?? 0
  return minMs < statementMsMin ? 1 : minMs / Math.max(was, statementMsMin / ratioMax)
}

function idleTable(before: Idle, after: Idle): string {
  const rows = after.statements
    .slice(0, 15)
    .map((one) => [
      one.query.replace(/\s+/g, ' ').slice(0, 90),
      String(one.calls),
      figure(before.statements.find(({ id }) => id === one.id)?.meanMs ?? Number.NaN),
      figure(one.meanMs),
      figure(one.minMs),
      figure(one.maxMs),
    ])
  return table(['', 'calls', 'small mean ms', 'full mean ms', 'min', 'max'], rows)
}
