import { requireNetwork } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../test/database.ts'
import { fail } from '../../chain/errors.ts'
import { instantOf } from '../../platform/clock.ts'
import { sql } from '../../platform/db/db.ts'
import { createLog } from '../../platform/log.ts'
import { refillChildren } from './refill.ts'
import { listWaiting } from './refill-store.ts'

const signedAt = new Date('2026-01-01T00:00:00Z')
const before = new Date('2026-01-01T00:00:10Z')
const acme = 'org_01h455vb4pex5vsknk084sn02q'
const other = 'org_01h455vb4pex5vsknk084sn02r'
const base = requireNetwork('base')
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`
    insert into organisations (id, name, type, plan, created_at)
    select id, 'Acme', 'team', 'enterprise', now() from unnest(${[acme, other]}::text[]) as given (id)`)
})
afterAll(() => database?.drop())

interface Queue {
  readonly organisation?: string
  readonly nonces: number
  readonly first: Date
}

/** Transfers of one child that were signed one millisecond apart and wait for a block. */
async function queue(name: string, child: string, { organisation = acme, nonces, first }: Queue) {
  const { db } = database
  const ids = sql`select n, 'wtx_' || lpad(${name}::text || n, 26, '0') as transfer, ${name}::text || n as ctx from generate_series(0, ${nonces - 1}::int) as n`
  await db.run(sql`
    insert into transfers (id, organisation_id, environment, wallet_id, from_address, to_address, from_chain, from_network, to_chain, to_network,
      from_token, to_token, decimals, raw_amount, route, route_reason, status, created_at)
    select transfer, ${organisation}::text, 'test', 'cad_' || ${name}::text, ${child}::text, '0xto', 'base', 'base', 'base', 'base', 'USDC', 'USDC', 6, 1,
      'direct', '', 'pending', now() from (${ids}) as made`)
  await db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    select ctx, 'base', ${child}::text, n, '0xto', '', 0, 60000, 'transfers.step', 'sent', now() from (${ids}) as made`)
  await db.run(sql`
    insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
    select ctx, 0, 'base', ctx, '', 1, 1, ${first}::timestamptz + n * interval '1 millisecond' from (${ids}) as made`)
  await db.run(sql`
    insert into transfer_steps (transfer_id, position, kind, sender, to_address, data, value, gas_limit, transaction_id)
    select transfer, 0, 'send', ${child}::text, '0xto', '', 0, 60000, ctx from (${ids}) as made`)
}

const requested = { network: 'base', before, most: 100 }

test('a child gets its top-up however many transfers wait behind another child that cannot be topped up', async () => {
  await queue('1', '0xaa', { nonces: 150, first: signedAt })
  await queue('2', '0xbb', { nonces: 2, first: new Date(signedAt.getTime() + 5_000) })
  const listed = await listWaiting(database.db, requested)
  expect(listed.map(({ sender, nonce }) => [sender, nonce]).toSorted()).toEqual([
    ['0xaa', 0n],
    ['0xbb', 0n],
  ])
})

test('an organisation whose children wait first leaves half of the slots to another one', async () => {
  for (let child = 0; child < 12; child += 1) await queue(`3${child}`, `0xa${child}`, { nonces: 1, first: signedAt })
  for (let child = 0; child < 3; child += 1)
    await queue(`4${child}`, `0xf${child}`, { organisation: other, nonces: 1, first: new Date('2026-01-01T00:00:05Z') })
  const listed = await listWaiting(database.db, { ...requested, most: 6 })
  const ofOther = listed.filter(({ organisationId }) => organisationId === other)
  expect([listed.length, ofOther.length]).toEqual([6, 3])
})

/** A context in which each child has this much coin, and none has a wallet. */
function contextOf(native: bigint, agreedHoldings?: (accounts: number) => unknown) {
  const requests: number[] = []
  const read: string[] = []
  const chain = {
    offeredFees: async () => ({ baseFee: 1n, maxFee: 2n, priorityFee: 1n, l1Fee: 0n }),
    agreedHoldings: async (questions: readonly unknown[]) => {
      requests.push(questions.length)
      return agreedHoldings?.(questions.length) ?? questions.map(() => ({ native, tokens: [] }))
    },
  }
  const ctx = {
    db: database.db,
    clock: { now: () => instantOf(before.getTime() + 60_000) },
    log: createLog({ level: 'silent' }),
    chains: { on: () => chain },
    findSource: async (_db: unknown, _tenant: unknown, walletId: string) => {
      read.push(walletId)
      throw fail('chain-unavailable', {}, new Error('slow'))
    },
  } as unknown as Parameters<typeof refillChildren.runOn>[0]
  return { ctx, requests, read }
}

test('children that can pay for their calls cost one request together, and their masters are not read', async () => {
  const { ctx, requests, read } = contextOf(60_000n)
  await refillChildren.runOn(ctx, base)
  expect([requests, read]).toEqual([[17], []])
})

test('each child that lacks gas is topped up in one run, whether or not those before it can be', async () => {
  const { ctx, read } = contextOf(59_999n)
  await refillChildren.runOn(ctx, base)
  expect(read).toHaveLength(17)
  expect(new Set(read).size).toBe(17)
})

test('where the nodes do not agree on the coin of a child, the others that were read with it are checked by themselves', async () => {
  const { ctx, read } = contextOf(60_000n, () => {
    throw fail('chain-unavailable', {}, new Error('the nodes do not agree on a balance'))
  })
  await refillChildren.runOn(ctx, base)
  expect(new Set(read).size).toBe(17)
})
