import { z } from 'zod'
import type { Tenant } from '../../src/platform/ctx.ts'
import { type Db, sql } from '../../src/platform/db/db.ts'
import type { PaymentId } from '../../src/platform/ids.ts'
import type { SimChain } from './chain.ts'
import type { Authorization } from './token.ts'

/** What a seed found: that the service broke what it promises. */
export class Violation extends Error {}

/** How a payer means to pay. */
export const payerKinds = [
  'honest',
  'poor',
  'cancels',
  'expires',
  'takes-on-code',
  'contract',
  'burning-contract',
  'sends-itself',
  'signs-twice',
] as const
export type PayerKind = (typeof payerKinds)[number]

/** A payment as the world outside of the service knows it. */
export interface Sold {
  readonly id: PaymentId
  readonly tenant: Tenant
  readonly kind: PayerKind
  readonly authorization: Authorization
  /** Asked for settlement, when so many batches had been planned. */
  askedAtBatches: number | undefined
  /** The buyer was told that it will never be charged. */
  isWithdrawn: boolean
  /** The payer did what it planned. */
  hasStruck: boolean
}

const Row = z.object({
  id: z.string(),
  status: z.string(),
  txHash: z.string().nullable(),
  isCarried: z.boolean().nullable(),
  isAlone: z.boolean().nullable(),
})
type Row = z.output<typeof Row>

const BatchesRow = z.object({ count: z.bigint() })
const UnbalancedRow = z.object({ what: z.string(), counted: z.string(), recorded: z.string() })

const batchesAtMost = 4
const ended = new Set(['settled', 'settlement_failed', 'voided'])

/** What must hold after each round, whatever happened in it. */
export class Model {
  readonly sold = new Map<string, Sold>()
  readonly #db: Db
  readonly #chain: SimChain
  readonly #depth: number
  readonly #before = new Map<string, string>()
  /** Ended without money at some time. */
  readonly #refused = new Set<string>()
  batches = 0

  constructor(db: Db, chain: SimChain, depth: number) {
    this.#db = db
    this.#chain = chain
    this.#depth = depth
  }

  /** The statuses as they are now; throws a `Violation`. */
  async check(isHealthy: boolean): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#db.many(
      Row,
      sql`select p.id, p.status, p.tx_hash, r.attempts > 0 as is_carried, r.alone as is_alone from payments p
        left join relays r on r.purpose = 'payments' and r.subject_id = p.id`,
    )
    for (const row of rows) this.#checkRow(row)
    this.#checkTurns(rows, isHealthy)
    this.batches = Number((await this.#db.one(BatchesRow, sql`select count(*) as count from chain_transactions`)).count)
    await this.#checkCounts()
    return new Map(rows.map(({ id, status }) => [id, status]))
  }

  #checkRow({ id, status, txHash }: Row): void {
    const sold = this.sold.get(id)
    if (sold === undefined) throw new Violation(`a payment ${id} that nobody made`)
    const before = this.#before.get(id)
    this.#before.set(id, status)
    if (before === 'settled' && status !== 'settled') throw new Violation(`${id} was settled and is ${status}`)
    if (before !== undefined && ended.has(before) && !ended.has(status))
      throw new Violation(`${id} was ${before} and is ${status}`)
    if (status !== 'settled' && ended.has(status)) this.#refused.add(id)
    const move = this.#chain.moveOf(sold.authorization)
    const isOurs = move?.receipt.transaction.nonce !== undefined
    if (isOurs && sold.isWithdrawn) throw new Violation(`${id} was withdrawn and then charged`)
    if (isOurs && status !== 'settled' && ended.has(status)) throw new Violation(`${id} is ${status} and was charged`)
    if (isOurs && this.#refused.has(id)) throw new Violation(`${id} ended without money and was charged after it`)
    if (status !== 'settled' || before === 'settled') return
    if (move === undefined) throw new Violation(`${id} is settled without money`)
    if (this.#chain.head.number - move.block.number + 1 < this.#depth)
      throw new Violation(`${id} is settled before its block is deep enough`)
    if (txHash !== move.receipt.transaction.hash)
      throw new Violation(`${id} is settled by another transaction than ${txHash}`)
  }

  /** Whoever can share a transaction waits for one turn over all organizations and one batch; two of each where two processes overlap. */
  #checkTurns(rows: readonly Row[], isHealthy: boolean): void {
    for (const { id, status, isCarried, isAlone } of rows) {
      const sold = this.sold.get(id)
      if (sold?.askedAtBatches === undefined) continue
      if (isCarried === true || isAlone === true || ended.has(status) || !isHealthy || sold.kind !== 'honest')
        sold.askedAtBatches = undefined
      else if (this.batches - sold.askedAtBatches > batchesAtMost)
        throw new Violation(`${id} waited for ${this.batches - sold.askedAtBatches} batches`)
    }
  }

  /** The count of each month and the gas budget of each day are what the records say. */
  async #checkCounts(): Promise<void> {
    const [unbalanced] = await this.#db.many(
      UnbalancedRow,
      sql`
      with kept as (
        select organisation_id, to_char(created_at at time zone 'UTC', 'YYYY-MM') as period, count(*) filter (where status not in ('voided', 'settlement_failed')) as n
        from payments group by 1, 2
      ), spent as (
        select organisation_id, (created_at at time zone 'UTC')::date as day, sum(gas_reserved_nano_usd + gas_used_nano_usd) as nano_usd from payments group by 1, 2
      )
      select 'count' as what, coalesce(u.used, 0)::text as counted, coalesce(k.n, 0)::text as recorded
      from kept k full join (select * from usage_counters where kind = 'payments') u using (organisation_id, period) where coalesce(u.used, 0) <> coalesce(k.n, 0)
      union all
      select 'gas budget', coalesce(b.nano_usd, 0)::text, coalesce(s.nano_usd, 0)::text
      from spent s full join gas_budgets b using (organisation_id, day) where coalesce(b.nano_usd, 0) <> coalesce(s.nano_usd, 0)`,
    )
    if (unbalanced !== undefined)
      throw new Violation(`the ${unbalanced.what} says ${unbalanced.counted}, the records ${unbalanced.recorded}`)
  }

  /** When all is quiet: what the chain says and what the records say is one. */
  checkEnd(statuses: ReadonlyMap<string, string>): void {
    for (const sold of this.sold.values()) {
      const [status, move] = [statuses.get(sold.id), this.#chain.moveOf(sold.authorization)]
      if (status === undefined) {
        if (move?.receipt.transaction.nonce !== undefined)
          throw new Violation(`${sold.id} was charged without a record`)
        continue
      }
      if (!ended.has(status)) throw new Violation(`${sold.id} (${sold.kind}) never ends: it is ${status}`)
      if ((status === 'settled') !== (move !== undefined))
        throw new Violation(
          `${sold.id} (${sold.kind}) is ${status}, and its money ${move === undefined ? 'did not move' : 'moved'}`,
        )
    }
  }
}
