import { networkByName } from '@purser/protocol'
import { z } from 'zod'
import { type Db, openDb, sql } from '../packages/server/src/platform/db/db.ts'
import { createLog } from '../packages/server/src/platform/log.ts'
import { startChild } from './children.ts'
import type { Closing } from './closing.ts'
import { figure, table } from './figures.ts'
import { startHome } from './sides.ts'

export interface WatchPlan {
  readonly addresses: readonly number[]
  /** Blocks of one measured look; each holds so many transfers. */
  readonly blocks: number
  readonly transfers: number
}

const sizes = [10_000, 100_000, 1_000_000]
export const fullWatch: WatchPlan = { addresses: sizes, blocks: 150, transfers: 2_000 }
export const quickWatch: WatchPlan = { addresses: sizes, blocks: 40, transfers: 2_000 }

/** Watched addresses that are paid in every block. */
const paidPerBlock = 2
const memoryMostMb = 150
/** A block among a million addresses may cost at most this many times the CPU time of one among ten thousand: more cannot be the machine's noise. */
const costFactorMost = 1.5

/**
 * Measures how many blocks a second the watcher of deposits reads, matches and stores, and the memory of the watched set, by the number of
 * watched addresses. Each size has a process of its own. Returns how many targets were missed or deposits not found.
 */
export async function benchWatch(plan: WatchPlan, closing: Closing): Promise<number> {
  const home = await startHome()
  closing.add(() => home.stop())
  const db = openDb({ url: home.postgres.url, connectionsMax: 4, log: createLog({ level: 'silent' }) })
  closing.add(() => db.close())
  const runs = []
  for (const addresses of plan.addresses)
    runs.push(await runWith(db, home.postgres.url, { ...plan, addresses, closing }))
  console.log(
    `\nwatcher of deposits: ${plan.blocks} blocks of ${plan.transfers} transfers, ${paidPerBlock} of them to watched addresses, read twice (at the head, and again\n  some blocks later); the node, which makes them up as it is requested, shares the machine\n`,
  )
  const head = [
    'watched addresses',
    'blocks/s',
    'ms a block',
    'CPU ms a block',
    'blocks/CPU s',
    'look-ups/s',
    'set MB',
    'process MB',
    'load s',
    'not found',
  ]
  console.log(
    table(
      head,
      runs.map(({ figures, missing }) => [
        Number(figures.addresses).toLocaleString('en-US'),
        figure(1_000 / figures.msPerBlock),
        figure(figures.msPerBlock),
        figure(figures.cpuMsPerBlock),
        figure(1_000 / figures.cpuMsPerBlock),
        figure(figures.lookupsPerSecond),
        figure(figures.setBytes / 1e6),
        figure(figures.residentBytes / 1e6),
        figure(figures.loadMs / 1_000),
        String(missing),
      ]),
    ),
  )
  const [least, most] = [runs[0], runs.at(-1)]
  const isDearer = (most?.figures.cpuMsPerBlock ?? 0) > (least?.figures.cpuMsPerBlock ?? 0) * costFactorMost
  const isLarge = (most?.figures.setBytes ?? 0) > memoryMostMb * 1e6
  console.log(`  the set of the most addresses stays under ${memoryMostMb} MB: ${isLarge ? 'NO' : 'yes'}`)
  console.log(`  a block costs no more among more addresses: ${isDearer ? 'NO' : 'yes'}`)
  return runs.reduce((sum, { missing }) => sum + missing, 0) + Number(isDearer) + Number(isLarge)
}

interface Sized {
  readonly addresses: number
  readonly blocks: number
  readonly transfers: number
  readonly closing: Closing
}

const measures = [
  'addresses',
  'loadMs',
  'setBytes',
  'residentBytes',
  'msPerBlock',
  'cpuMsPerBlock',
  'lookupsPerSecond',
] as const

async function runWith(db: Db, databaseUrl: string, { addresses, blocks, transfers, closing }: Sized) {
  await watchMany(db, addresses)
  const paid = await db.many(
    z.object({ address: z.string() }),
    sql`select '0x' || encode(address, 'hex') as address from watched_addresses order by wallet_id limit ${paidPerBlock}`,
  )
  const node = await startChild('watch-node.ts', {
    BENCH_CHAIN_ID: String(networkByName('base-sepolia')?.chainId),
    BENCH_TRANSFERS: String(transfers),
    BENCH_PAID: paid.map(({ address }) => address).join(','),
  })
  const stopNode = closing.add(() => node.stop())
  const side = await startChild('watch-side.ts', {
    BENCH_DATABASE_URL: databaseUrl,
    BENCH_RPC_URL: `http://127.0.0.1:${node.ready('port')}`,
    BENCH_BLOCKS: String(blocks),
    NODE_OPTIONS: '--expose-gc',
  })
  const figures = Object.fromEntries(measures.map((name) => [name, Number(side.ready(name))])) as Record<
    (typeof measures)[number],
    number
  >
  const found = await db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from wallet_transactions`)
  await side.stop()
  await stopNode()
  // Every block from the first on, the 20 of the warm-up and the one at 0 too.
  return { figures, missing: Math.abs((blocks + 21) * paidPerBlock - Number(found.count)) }
}

/** Has so many random addresses watched, and nothing seen yet. */
async function watchMany(db: Db, count: number): Promise<void> {
  for (const statement of [
    sql`truncate watched_addresses`,
    sql`truncate wallet_transactions`,
    sql`truncate deposit_cursors`,
    sql`truncate scanned_blocks`,
  ])
    await db.run(statement)
  const atOnce = 100_000
  for (let from = 0; from < count; from += atOnce)
    await db.run(sql`
      insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
      select 'cad_' || lpad(n::text, 26, '0'), 'base-sepolia', 'base', 'org_01h455vb4pex5vsknk084sn02q', 'test',
        substr(sha256(n::text::bytea), 1, 20), array['USDC'], now() - interval '1 hour'
      from generate_series(${from + 1}::integer, ${Math.min(count, from + atOnce)}::integer) as n`)
}
