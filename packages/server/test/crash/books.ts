import { type DevChain, tokenBalance } from '@purser/devnet'
import { createPublicClient, http, parseAbi } from 'viem'
import { expect } from 'vitest'
import { z } from 'zod'
import { verifyAudit } from '../../src/platform/audit.ts'
import { type Db, sql } from '../../src/platform/db/db.ts'
import { id } from '../../src/platform/ids.ts'
import type { Load, Purchase } from './load.ts'
import type { Deployment } from './stage.ts'

const PaymentRow = z.object({
  id: id('pay'),
  payer: z.string(),
  nonce: z.string(),
  status: z.string(),
  txHash: z.string().nullable(),
})
const EventRow = z.object({ type: z.string(), paymentId: z.string() })
const rawPrice = 10_000n

export interface Books {
  readonly db: Db
  readonly chain: DevChain
  readonly deployment: Deployment
}

/** The number of payments that wait for the chain. */
export async function countSettling(db: Db): Promise<bigint> {
  return (
    await db.one(z.object({ count: z.bigint() }), sql`select count(*) as count from payments where status = 'settling'`)
  ).count
}

/** The number of the settler's transactions in this state or a later one. */
export async function countTransactions(db: Db, atLeast: 'sent' | 'final'): Promise<number> {
  const reached = atLeast === 'sent' ? ['sent', 'mined', 'final'] : ['final']
  const row = await db.one(
    z.object({ count: z.bigint() }),
    sql`select count(*) as count from chain_transactions where status = any(${reached}::text[])`,
  )
  return Number(row.count)
}

/**
 * Compares what the service acknowledged, what its database contains and what the chain shows. Every acknowledged
 * payment must be in all three, exactly once. Returns the totals for the log.
 */
export async function expectBooksToAgree(
  { db, chain, deployment }: Books,
  load: Pick<Load, 'purchases' | 'faults'>,
): Promise<Record<string, number>> {
  const { purchases } = load
  expect(load.faults).toEqual([])
  const rows = await listPayments(db)
  const byNonce = Map.groupBy(rows, ({ nonce }) => nonce)
  expect(
    [...byNonce.values()].filter((same) => same.length > 1),
    'payments recorded twice',
  ).toEqual([])
  const rowOf = ({ nonce }: Pick<Purchase, 'nonce'>) => byNonce.get(nonce)?.[0]

  const verified = purchases.filter((purchase) => purchase.verified !== undefined)
  const expectNone = (wrong: readonly Purchase[], what: string) =>
    expect(
      wrong.map(({ credential: _, ...rest }) => ({ ...rest, row: rowOf(rest) })),
      what,
    ).toEqual([])
  expectNone(
    verified.filter((purchase) => rowOf(purchase)?.id !== purchase.verified?.paymentId),
    'verified, acknowledged and lost',
  )
  expectNone(
    purchases.filter((purchase) => purchase.recorded === true && rowOf(purchase) === undefined),
    'refused as duplicates of nothing',
  )
  expect(rows).toHaveLength(purchases.filter((purchase) => rowOf(purchase) !== undefined).length)
  const requested = purchases.filter((purchase) => purchase.settled !== undefined)
  expectNone(
    requested.filter((purchase) => rowOf(purchase)?.status !== 'settled'),
    'acknowledged and never settled',
  )
  const reported = requested.filter(({ settled }) => settled?.status === 200)
  expectNone(
    reported.filter((purchase) => rowOf(purchase)?.txHash !== purchase.settled?.txHash),
    'settled by another transaction than was reported',
  )

  const settled = rows.filter(({ status }) => status === 'settled')
  expect(rows.filter(({ status }) => status !== 'settled' && status !== 'verified')).toEqual([])
  await expectOnChain({ chain, deployment }, settled)
  await expectReported({ db, deployment }, rows, settled)
  return {
    purchases: purchases.length,
    recorded: rows.length,
    verifyAcknowledged: verified.length,
    settleAcknowledged: requested.length,
    settled: settled.length,
    transactions: await countTransactions(db, 'final'),
  }
}

type Row = z.output<typeof PaymentRow>

function listPayments(db: Db): Promise<Row[]> {
  return db.many(PaymentRow, sql`select id, payer, settlement ->> 'nonce' as nonce, status, tx_hash from payments`)
}

const abi = parseAbi([
  'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
  'event Transfer(address indexed from, address indexed to, uint256 value)',
])

async function expectOnChain({ chain, deployment }: Omit<Books, 'db'>, settled: readonly Row[]): Promise<void> {
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const range = { address: chain.tokens.USDC, fromBlock: 0n, toBlock: 'latest', strict: true } as const
  const used = await client.getLogs({ ...range, event: abi[0] })
  const onChain = used.map(
    ({ args, transactionHash }) => `${args.authorizer.toLowerCase()} ${args.nonce} ${transactionHash}`,
  )
  const inBooks = settled.map(({ payer, nonce, txHash }) => `${payer.toLowerCase()} ${nonce} ${txHash}`)
  expect(
    onChain.toSorted(),
    'every settled payment is on chain once, in the reported transaction, and nothing else is',
  ).toEqual(inBooks.toSorted())
  const received = await client.getLogs({ ...range, event: abi[1], args: { to: deployment.wallet.address } })
  expect(received).toHaveLength(settled.length)
  expect(await tokenBalance(chain, 'USDC', deployment.wallet.address)).toBe(rawPrice * BigInt(settled.length))
}

/** The outbox, the counter of the month and the audit log agree. */
async function expectReported(
  { db, deployment }: Omit<Books, 'chain'>,
  rows: readonly Row[],
  settled: readonly Row[],
): Promise<void> {
  const events = await db.many(
    EventRow,
    sql`select type, payload ->> 'paymentId' as payment_id from events where type like 'payment.%'`,
  )
  const reportOf = (type: string): string[] =>
    events
      .filter((event) => event.type === type)
      .map(({ paymentId }) => paymentId)
      .toSorted()
  expect(reportOf('payment.received')).toEqual(rows.map((row) => row.id).toSorted())
  expect(reportOf('payment.settled')).toEqual(settled.map((row) => row.id).toSorted())
  expect(events).toHaveLength(rows.length + settled.length)

  const used = await db.one(
    z.object({ used: z.bigint() }),
    sql`select coalesce(sum(used), 0)::bigint as used from usage_counters where kind = 'payments'`,
  )
  expect(used.used, 'the quota of the month').toBe(BigInt(rows.length))
  expect(await verifyAudit(db, deployment.organisationId)).toMatchObject({ intact: true })
  const audited = await db.many(
    z.object({ id: z.string() }),
    sql`
    select jsonb_array_elements_text(details -> 'payments') as id from audit_log where action = 'payments.settled'`,
  )
  expect(audited.map((entry) => entry.id).toSorted()).toEqual(settled.map((row) => row.id).toSorted())
}
