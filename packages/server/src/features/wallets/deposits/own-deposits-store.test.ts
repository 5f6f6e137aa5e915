import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { freshDatabase, type TestDatabase } from '../../../../test/database.ts'
import { sql } from '../../../platform/db/db.ts'
import { id } from '../../../platform/ids.ts'
import { classifyOwnDeposits } from './own-deposits-store.ts'

const [child, master, token] = ['0xChild', '0xMaster', '0xToken']
const name = (prefix: string, n: number): string => `${prefix}_${String(n).padStart(26, '0')}`
let database: TestDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await database.db.run(sql`
    insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
    values ('mwt_1', 'base', 'base', 'org_1', 'live', decode(repeat('01', 20), 'hex'), '{USDC}', now())`)
  await database.db.run(sql`alter table sweep_transfers drop constraint sweep_transfers_sweep_id_fkey,
    drop constraint sweep_transfers_child_address_id_fkey, drop constraint sweep_transfers_organisation_id_fkey`)
  await database.db.run(
    sql`alter table wallet_transactions drop constraint if exists wallet_transactions_organisation_id_fkey`,
  )
})
beforeEach(async () => {
  for (const table of [
    'wallet_transactions',
    'sweep_transfers',
    'relays',
    'transaction_attempts',
    'chain_transactions',
  ])
    await database.db.run({ text: `delete from ${table}`, values: [] })
})
afterAll(() => database?.drop())

/** Books a transfer of 5 units from the child to its master. */
async function booked(
  n: number,
  txHash: string,
  { logIndex = 0, bookedAt = '10:05' }: { readonly logIndex?: number; readonly bookedAt?: string } = {},
) {
  await database.db.run(sql`
    insert into wallet_transactions (id, organisation_id, environment, wallet_id, network, chain, tx_hash, log_index, direction, kind, status,
      token, token_symbol, decimals, raw_amount, from_address, to_address, block_number, block_hash, block_time, created_at, aml_due_at)
    values (${name('wtx', n)}, 'org_1', 'live', 'mwt_1', 'base', 'base', ${txHash}, ${logIndex}, 'in', 'internal', 'pending', ${token}, 'USDC', 6, 5,
      ${child}, ${master}, 1, '0xblock', now(), ${`2026-01-01T${bookedAt}:00Z`}::timestamptz, 'infinity')`)
  return { id: id('wtx').parse(name('wtx', n)) }
}

interface Sweep {
  readonly status: 'planned' | 'signed' | 'sent' | 'swept' | 'failed'
  /** The hash that the sweep's row has. */
  readonly txHash?: string
  /** The hashes under which its transaction was sent. */
  readonly attempts?: readonly string[]
}

/** Stores a sweep of 5 units by a relay, requested at 10:00. */
async function aSweep({ status, txHash, attempts = [] }: Sweep): Promise<void> {
  const [sweepId, childId, transactionId] = [name('swp', 1), name('cad', 1), name('ctx', 1)]
  await database.db.run(sql`
    insert into sweep_transfers (sweep_id, child_address_id, organisation_id, environment, network, asset, from_address, to_address, raw_amount,
      frozen_raw_amount, nonce, valid_before, status, tx_hash, created_at)
    values (${sweepId}, ${childId}, 'org_1', 'live', 'base', ${token}, ${child}, ${master}, 5, 0, decode(repeat('00', 32), 'hex'), now(), ${status},
      ${txHash ?? null}, '2026-01-01T10:00:00Z')`)
  if (attempts.length === 0) return
  await database.db.run(sql`
    insert into chain_transactions (id, network, sender, nonce, to_address, data, value, gas_limit, purpose, status, created_at)
    values (${transactionId}, 'base', '0x1', 1, '0x2', '\\x', 0, 1, 'relays', 'sent', now())`)
  for (const [sequence, hash] of attempts.entries())
    await database.db.run(sql`
      insert into transaction_attempts (transaction_id, sequence, network, hash, raw, max_fee, priority_fee, created_at)
      values (${transactionId}, ${sequence}, 'base', ${hash}, '\\x', 1, 1, now())`)
  await database.db.run(sql`
    insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
      transaction_id, created_at)
    values ('base', 'wallets.sweeps', ${`${sweepId} ${childId}`}, 'org_1', 'live', '0x1', 'x', 'x', '{}', now(), false, 'included', ${transactionId}, now())`)
}

async function verdictsOf(...rows: { readonly id: `wtx_${string}` }[]): Promise<(string | undefined)[]> {
  const verdicts = await database.db.tx((tx) => classifyOwnDeposits(tx, rows))
  return rows.map((row) => verdicts.get(row.id))
}

test('without a sweep of this amount a movement between own wallets is a deposit', async () => {
  expect(await verdictsOf(await booked(1, '0xaa'))).toEqual(['deposit'])
})

test.each(['planned', 'signed', 'sent'] as const)(
  'of the amount of an open sweep (%s), in another transaction: nobody can say yet, and nothing is reported as swept',
  async (status) => {
    await aSweep({ status, attempts: status === 'planned' ? [] : ['0xbb'] })
    expect(await verdictsOf(await booked(1, '0xaa'))).toEqual(['undecided'])
  },
)

test.each(['swept', 'failed'] as const)(
  'once the sweep has %s in or without another transaction, it is a deposit',
  async (status) => {
    await aSweep({ status, txHash: '0xbb' })
    expect(await verdictsOf(await booked(1, '0xaa'))).toEqual(['deposit'])
  },
)

test('a sweep is recognized by each hash under which it was sent, and by the hash of another sender', async () => {
  await aSweep({ status: 'sent', txHash: '0xb2', attempts: ['0xb1', '0xb2'] })
  expect(await verdictsOf(await booked(1, '0xb1'))).toEqual(['sweep'])
  await database.db.run(sql`update sweep_transfers set status = 'swept', tx_hash = '0xcc'`)
  expect(await verdictsOf(await booked(2, '0xcc'))).toEqual(['sweep'])
})

test('of two movements of one amount in one transaction, one is the sweep and the other is a deposit', async () => {
  await aSweep({ status: 'swept', txHash: '0xb1', attempts: ['0xb1'] })
  const rows = [await booked(1, '0xb1', { logIndex: 4 }), await booked(2, '0xb1', { logIndex: 7 })] as const
  expect(await verdictsOf(...rows)).toEqual(['sweep', 'deposit'])
})

test('a sweep that was requested after the movement was booked is not it', async () => {
  await aSweep({ status: 'planned' })
  expect(await verdictsOf(await booked(1, '0xaa', { bookedAt: '09:59' }))).toEqual(['deposit'])
})
