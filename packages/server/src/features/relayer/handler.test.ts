import type { Hex } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import type { Log, Receipt } from '../../chain/port.ts'
import { sql } from '../../platform/db/db.ts'
import { relayHandler } from './handler.ts'
import type { RelayPurpose, SpentOnRelay } from './port.ts'
import { relays } from './relays.ts'
import { markIncluded } from './store.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values (${id}, 'base-sepolia', '0x1', 1, '0x2', '\\x', 0, 1, 'relays', 'sent', now())`)
})
afterAll(() => database?.drop())

const id = `ctx_${'0'.repeat(26)}` as const
const price = 7n
const l1Fee = 30n

const nothing = async () => undefined
const aPurpose: RelayPurpose = {
  purpose: 'payments',
  share: 1,
  refusal: 'fail',
  lock: nothing,
  onSettled: nothing,
  onFailed: nothing,
  onSpent: nothing,
}
const transaction = { id, network: 'base-sepolia', purpose: 'relays', nonce: 0n, hash: hashOf('1') }

/** Stores three relays that the transaction carries. */
async function includeThree(): Promise<void> {
  const { db } = database
  await db.run(sql`delete from relays`)
  await relays.enqueue(
    db,
    'payments',
    sql`
    select n::text as subject_id, 'base-sepolia'::text as network, ${`org_${'0'.repeat(26)}`}::text as organisation_id, 'test'::text as environment,
      jsonb_build_object('kind', 'eip3009', 'from', '0x0' || n, 'to', '0x02', 'value', '1', 'validAfter', '0', 'validBefore', '1', 'token', '0xAA',
        'nonce', '0x0' || n, 'deployment', null, 'signature', jsonb_build_object('kind', 'ecdsa', 'v', 27, 'r', '0x01', 's', '0x02')) as payload,
      now() + interval '1 hour' as valid_before, now() as created_at
    from generate_series(1, 3) as n`,
  )
  const rows = await db.many(z.object({ id: z.bigint() }), sql`select id from relays order by id`)
  await db.tx((tx) =>
    markIncluded(
      tx,
      rows.map((row) => row.id),
      id,
    ),
  )
}

/** What three relays of one transaction are charged, in wei, when it used this much gas, with these logs, and moved nothing. */
async function chargedFor(gasUsed: bigint, logs: readonly Log[] = []): Promise<readonly bigint[]> {
  const spent: SpentOnRelay[] = []
  const purpose: RelayPurpose = { ...aPurpose, onSpent: async (_, given) => void spent.push(...given) }
  const receipt: Receipt = {
    transactionHash: transaction.hash,
    status: 'reverted',
    blockNumber: 1n,
    blockHash: transaction.hash,
    gasUsed,
    effectiveGasPrice: price,
    l1Fee,
    logs,
  }
  await includeThree()
  const handler = relayHandler({ purposes: new Map([['payments', purpose]]) })
  await database.db.tx((tx) => handler.onFinal(tx, [{ transaction, receipt }]))
  return spent.map(({ wei }) => wei)
}

test('relays of a transaction whose block is reorganized away stay in it: its stored bytes may be mined again', async () => {
  await includeThree()
  const reorganized: unknown[] = []
  const onReorganized: RelayPurpose['onReorganized'] = async (_, own) => void reorganized.push(...own)
  const handler = relayHandler({ purposes: new Map([['payments', { ...aPurpose, onReorganized }]]) })
  await database.db.tx(async (tx) => handler.onReorganized?.(tx, [transaction]))
  expect(reorganized).toHaveLength(3)
  const Row = z.object({ state: z.string(), transactionId: z.string().nullable(), nextAttemptAt: z.date().nullable() })
  const rows = await database.db.many(Row, sql`select state, transaction_id, next_attempt_at from relays order by id`)
  expect(rows).toEqual([1, 2, 3].map(() => ({ state: 'included', transactionId: id, nextAttemptAt: null })))
})

test.each([
  ['less gas than their grants: each pays its whole grant', 200_000n, 100_000n],
  ['more gas than their grants: each pays its share of all of it', 360_001n, 120_001n],
])('the relays of a burnt batch pay for it together when it used %s', async (_name, gasUsed, each) => {
  const charged = await chargedFor(gasUsed)
  expect(charged).toEqual([0, 1, 2].map(() => each * price + l1Fee / 3n))
  expect(charged.reduce((sum, wei) => sum + wei, 0n)).toBeGreaterThanOrEqual(gasUsed * price + l1Fee)
})

test('each relay of a batch pays for the gas of its own call and for an equal share of the rest', async () => {
  const used = [92_000n, 30_000n, 51_000n]
  const words = (gas: readonly bigint[]) => gas.map((one) => one.toString(16).padStart(64, '0')).join('')
  const contract = `0x${'c'.repeat(40)}` as const
  const log = (data: string, topics: Log['topics'] = []): Log => ({ address: contract, topics, data: `0x${data}` })
  const own = log(words(used))
  // Others' logs, of the same length with a topic, earlier, or of another length, change nothing.
  const others = [log(words([1n, 2n, 3n])), own, log(words([4n])), log(words([5n, 6n, 7n]), [hashOf('1')])]
  for (const logs of [[own], others])
    expect(await chargedFor(233_000n, logs)).toEqual(used.map((gas) => (gas + 20_000n) * price + l1Fee / 3n))
})

function hashOf(digit: string): Hex {
  return `0x${digit.repeat(64)}`
}
