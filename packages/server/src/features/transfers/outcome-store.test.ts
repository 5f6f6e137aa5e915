import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { isRefusedData, sql, type Tx } from '../../platform/db/db.ts'
import { type CoinShare, sumCoinShares, takeCoinShare } from './coin-share-store.ts'
import { takeMessage } from './partner-store.ts'
import type { TransferId } from './store.ts'

const first: TransferId = 'wtx_01h455vb4pex5vsknk084sn02q'
const second: TransferId = 'wtx_01h455vb4pex5vsknk084sn02r'
const elsewhere: TransferId = 'wtx_01h455vb4pex5vsknk084sn02s'
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  const { db } = database
  await db.run(
    sql`insert into organisations (id, name, type, plan, created_at) values ('org_01h455vb4pex5vsknk084sn02q', 'Acme', 'team', 'enterprise', now())`,
  )
  await db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at, partner, partner_reference, quote_expires_at,
      to_decimals, raw_out, raw_out_min)
    select id, 'org_01h455vb4pex5vsknk084sn02q', 'test', 'mwt_01h455vb4pex5vsknk084sn02q', '0xfrom', '0xto', 'base', 'base-sepolia', 'ethereum', network,
      'USDC', 'USDC', 6, 1, 'partner-bridge', '', 'pending', now(), 'cctp', '', now(), 6, 1, 1
    from unnest(${[first, second, elsewhere]}::text[], ${['eth-sepolia', 'eth-sepolia', 'optimism-sepolia']}::text[]) as given (id, network)`)
})
afterAll(() => database?.drop())

const take = (id: TransferId, toNetwork: string) =>
  database.db.tx((tx) => takeMessage(tx, { id, toNetwork }, '0xmessage'))

async function waiting(): Promise<bigint> {
  const statement = sql`select count(*) as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return (await database.db.one(z.object({ count: z.bigint() }), statement)).count
}

test('of two identical transfers that claim one message concurrently the first gets it, whatever the second could see', async () => {
  let refusal: Promise<unknown> | undefined
  await database.db.tx(async (tx) => {
    expect(await takeMessage(tx, { id: first, toNetwork: 'eth-sepolia' }, '0xmessage')).toBe(true)
    // Does not see the first yet, and waits at the index.
    refusal = take(second, 'eth-sepolia').catch((error: unknown) => error)
    await expect.poll(waiting).toBeGreaterThan(0n)
  })
  expect(isRefusedData(await refusal)).toBe(true)
  expect(await take(second, 'eth-sepolia')).toBe(false)
  expect(await take(first, 'eth-sepolia')).toBe(true)
  expect(await take(elsewhere, 'optimism-sepolia')).toBe(true)
})

test('of two transfers that concurrently take coin that suffices for one, the first gets it', async () => {
  const of = { network: 'eth-sepolia', account: `0x${'Ab'.repeat(20)}`, block: 7n } as const
  const share: CoinShare = { ...of, rawLeast: 10n, rawOthers: 0n, message: undefined }
  const owned = { organisationId: 'org_01h455vb4pex5vsknk084sn02q', environment: 'test' } as const
  const takeShare = (tx: Tx, id: TransferId, rawOthers: bigint) =>
    takeCoinShare(tx, { id, ...owned }, { ...share, rawOthers })
  let later: Promise<boolean> | undefined
  await database.db.tx(async (tx) => {
    expect(await takeShare(tx, first, 0n)).toBe(true)
    later = database.db.tx((other) => takeShare(other, second, 0n))
    await expect.poll(waiting).toBeGreaterThan(0n)
  })
  expect(await later).toBe(false)
  expect(await sumCoinShares(database.db, of)).toBe(10n)
  expect(await database.db.tx((tx) => takeShare(tx, second, 10n)), 'a rise that covers both').toBe(true)
})
