import { type DevChain, tokenBalance } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { createPublicClient, http } from 'viem'
import { expect } from 'vitest'
import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'
import { rawOf, type TransferAttempt, type Wallet } from './transfer-load.ts'

const Raw = z.string().transform((text) => BigInt(text))
const TransferRow = z.object({
  id: z.string(),
  toAddress: z.string(),
  status: z.string(),
  answered: z.string().nullable(),
  events: z.bigint(),
  audited: z.bigint(),
})
const SentRow = z.object({
  sender: z.string(),
  nonce: z.bigint(),
  status: z.string(),
  minedHash: z.string().nullable(),
})

export interface Holdings {
  readonly token: bigint
  readonly native: bigint
}

/** The sum of these wallets' balances. */
export async function holdingsOf(chain: DevChain, wallets: readonly Wallet[]): Promise<Holdings> {
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const balances = await Promise.all(
    wallets.map(async ({ address }) => ({
      token: await tokenBalance(chain, 'USDC', address),
      native: await client.getBalance({ address }),
    })),
  )
  return {
    token: balances.reduce((sum, { token }) => sum + token, 0n),
    native: balances.reduce((sum, { native }) => sum + native, 0n),
  }
}

/** The number of transfers without an end and transactions without a final block. */
export async function countOpen(db: Db): Promise<number> {
  const row = await db.one(
    z.object({ open: z.bigint() }),
    sql`
    select (select count(*) from transfers where ended_at is null) + (select count(*) from chain_transactions where status <> 'final') as open`,
  )
  return Number(row.open)
}

/** The number of transfers signed by a child. Each has ended, in at least one transaction of the settler. */
async function countGasless(db: Db): Promise<number> {
  const row = await db.one(
    z.object({ all: z.bigint(), ended: z.bigint() }),
    sql`
    select count(*) as all, count(*) filter (where a.status = 'ended' and r.state = 'settled' and r.attempts > 0) as ended
    from transfer_authorisations a left join relays r on r.purpose = 'transfers.gasless' and r.subject_id = a.transfer_id`,
  )
  expect(row.ended).toBe(row.all)
  return Number(row.all)
}

export interface TransferBooks {
  readonly db: Db
  readonly chain: DevChain
  readonly wallets: readonly Wallet[]
  /** Balances before the first transfer. */
  readonly before: Holdings
}

/** Compares the answers to callers with the rows and the chain. Returns the totals for the log. */
export async function expectTransfersToAgree(books: TransferBooks, wishes: readonly TransferAttempt[]) {
  const rows = await books.db.many(
    TransferRow,
    sql`
    select id, to_address, status, answered, (select count(*) from events e where e.payload ->> 'transactionId' = t.id) as events,
      (select count(*) from audit_log a where a.target = t.id and a.action = 'transfers.confirmed') as audited from transfers t`,
  )
  const rowsByRecipient = Map.groupBy(rows, ({ toAddress }) => toAddress)
  expect(
    [...rowsByRecipient.values()].filter((same) => same.length > 1),
    'made twice',
  ).toEqual([])
  expect(rows.filter(({ status }) => status !== 'confirmed')).toEqual([])
  const acknowledged = wishes.filter(({ answer: response }) => response !== undefined)
  for (const { to, answer: response } of acknowledged)
    expect([response, rowsByRecipient.get(to)?.[0]?.id], 'acknowledged and lost').toEqual([
      expect.objectContaining({ status: 201 }),
      response?.id,
    ])
  for (const { events, answered } of rows) expect(events).toBe(answered === 'pending' ? 1n : 0n)
  expect(
    rows.filter(({ audited }) => audited !== 1n),
    'an end that is not in the audit log once',
  ).toEqual([])
  const moved = await expectOnChain(books, wishes, new Set(rowsByRecipient.keys()))
  const transactions = await expectNonces(books)
  return {
    requested: wishes.length,
    acknowledged: acknowledged.length,
    made: rows.length,
    madeUnacknowledged: rows.length - acknowledged.length,
    gasless: await countGasless(books.db),
    answeredPending: rows.filter(({ answered }) => answered === 'pending').length,
    transactions,
    ...moved,
  }
}

/**
 * Each recipient has its amount once, or nothing where there is no transfer. What left the wallets is that sum and the
 * gas.
 */
async function expectOnChain(
  { db, chain, wallets, before }: TransferBooks,
  wishes: readonly TransferAttempt[],
  made: ReadonlySet<string>,
) {
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const holds = (token: TransferAttempt['token'], address: Address) =>
    token === 'USDC' ? tokenBalance(chain, 'USDC', address) : client.getBalance({ address })
  const moved = { USDC: 0n, ETH: 0n }
  for (const { to, token } of wishes) {
    const balance = await holds(token, to)
    expect(balance, `${token} of ${to}`).toBe(made.has(to) ? rawOf[token] : 0n)
    moved[token] += balance
  }
  const { gas } = await db.one(
    z.object({ gas: Raw }),
    sql`select sum(gas_used * effective_gas_price)::text as gas from chain_transactions where sender = any(${wallets.map(({ address }) => address)}::text[])`,
  )
  const after = await holdingsOf(chain, wallets)
  expect({ token: before.token - after.token, native: before.native - after.native }, 'the sum on chain').toEqual({
    token: moved.USDC,
    native: moved.ETH + gas,
  })
  return { rawUsdcMoved: String(moved.USDC), weiMoved: String(moved.ETH), weiOfGas: String(gas) }
}

/** Every nonce counted by the chain belongs to exactly one of our transactions, in a block under one hash. */
async function expectNonces({ db, chain, wallets }: TransferBooks): Promise<number> {
  const client = createPublicClient({ transport: http(chain.rpcUrl) })
  const sent = await db.many(
    SentRow,
    sql`select sender, nonce, status, mined_hash from chain_transactions where purpose <> 'relays' order by nonce`,
  )
  const bySender = Map.groupBy(sent, ({ sender }) => sender)
  for (const { address } of wallets) {
    const own = bySender.get(address) ?? []
    const count = await client.getTransactionCount({ address })
    expect(own.map(({ nonce }) => nonce)).toEqual(Array.from({ length: count }, (_, nonce) => BigInt(nonce)))
    for (const { nonce, minedHash, status } of own) {
      expect(status).toBe('final')
      const mined = await client.getTransaction({ hash: `0x${minedHash?.slice(2) ?? ''}` })
      expect([mined.from, BigInt(mined.nonce)]).toEqual([address.toLowerCase(), nonce])
    }
  }
  expect(sent).toHaveLength(wallets.reduce((sum, { address }) => sum + (bySender.get(address)?.length ?? 0), 0))
  return sent.length
}
