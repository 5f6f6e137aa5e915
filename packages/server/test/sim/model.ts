import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'
import type { Move, SimChain, SimReceipt } from './chain.ts'
import type { Sale, Witness } from './shop.ts'
import { checkSweeps } from './sweeps.ts'
import { Violation } from './violation.ts'

const Row = z.object({
  id: z.string(),
  claimKey: z.string(),
  status: z.string(),
  rawAmount: z.string().transform((text) => BigInt(text)),
  txHash: z.string().nullable(),
  failureReason: z.string().nullable(),
  isCarried: z.boolean().nullable(),
  isAlone: z.boolean().nullable(),
  isPutOff: z.boolean().nullable(),
})
type Row = z.output<typeof Row>

const PlannedRow = z.object({ all: z.bigint(), alone: z.bigint() })
const UnbalancedRow = z.object({ what: z.string(), counted: z.string(), recorded: z.string() })

/**
 * The maximum number of batches that a relay waits for if it can share a transaction; twice as many as one process
 * needs.
 */
const batchesAtMost = 4
/** Lone relays that were already in progress, of two processes, and of organisations that came later. */
const aloneSlack = 6
/** The relays of one transaction. */
const relaysAtMost = 100n
const ended = new Set(['settled', 'settlement_failed', 'voided'])
const expired = new Set(['invalid_exact_evm_payload_authorization_valid_before', 'permit2_deadline_expired'])

/** Checks the invariants after each round, whatever happened in it. */
export class Model implements Witness {
  readonly sales: Sale[] = []
  readonly #byClaim = new Map<string, Sale>()
  readonly #db: Db
  readonly #chain: SimChain
  readonly #hasLiar: boolean
  /** The organisation that sweeps. The model has no sale for its attempts. */
  readonly #sweeping: string
  readonly #before = new Map<string, string>()
  /** Sales that ended without money at some time. */
  readonly #unpaid = new Set<Sale>()
  /** Sales whose final result was undone by a reorganization beyond the depth. */
  readonly #shaken = new Set<Sale>()
  #isShaken = false
  planned = { batches: 0, alone: 0 }

  constructor(
    db: Db,
    chain: SimChain,
    { hasLiar, sweeping }: { readonly hasLiar: boolean; readonly sweeping: string },
  ) {
    this.#sweeping = sweeping
    this.#hasLiar = hasLiar
    this.#db = db
    this.#chain = chain
  }

  add(sale: Sale): void {
    this.sales.push(sale)
    this.#byClaim.set(sale.claimKey, sale)
  }

  /** From now on no final result is certain. */
  shake(): void {
    this.#isShaken = true
    for (const sale of this.sales) this.#shaken.add(sale)
  }

  onServed(sale: Sale): void {
    if (sale.served > 1) throw new Violation(`${nameOf(sale)} was served ${sale.served} times`)
    if (sale.refusal !== undefined) throw new Violation(`${nameOf(sale)} was served, and its buyer was refused`)
    if (this.#shaken.has(sale) || owesNothing(sale)) return
    const move = this.#moveOf(sale)
    if (move === undefined) throw new Violation(`${nameOf(sale)} was served without money`)
    if (!this.#isDeep(move)) throw new Violation(`${nameOf(sale)} was served before its block was deep enough`)
  }

  onShown(sale: Sale): void {
    if (!this.#chain.shown.has(sale.money) && !this.#shaken.has(sale))
      throw new Violation(`${nameOf(sale)} names a transaction, and no block ever showed its money`)
  }

  /** Checks the current statuses and returns them; throws a `Violation`. */
  async check(isHealthy: boolean): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#db.many(
      Row,
      sql`select p.id, p.claim_key, p.status, p.raw_amount, p.tx_hash, p.failure_reason, r.attempts > 0 as is_carried, r.alone as is_alone,
        r.next_attempt_at is null or r.next_attempt_at > now() as is_put_off
      from payments p left join relays r on r.purpose = 'payments' and r.subject_id = p.id`,
    )
    for (const row of rows) this.#checkRow(row)
    await this.#checkTurns(rows, isHealthy)
    if (!this.#hasLiar) this.#checkPromised(rows)
    await this.#checkCounts()
    await checkSweeps(this.#db, this.#chain, { isOver: false, isShaken: this.#isShaken })
    return new Map(rows.map(({ claimKey, status }) => [claimKey, status]))
  }

  #checkRow(row: Row): void {
    const { id, claimKey, status } = row
    const sale = this.#byClaim.get(claimKey)
    if (sale === undefined) throw new Violation(`a payment ${id} that nobody made`)
    const before = this.#before.get(id)
    this.#before.set(id, status)
    if (before === 'settled' && status !== 'settled')
      throw new Violation(`${nameOf(sale)} was settled and is ${status}`)
    if (before !== undefined && ended.has(before) && !ended.has(status))
      throw new Violation(`${nameOf(sale)} was ${before} and is ${status}`)
    if (this.#shaken.has(sale)) return
    const move = this.#moveOf(sale)
    if (status !== 'settled' && ended.has(status)) this.#checkUnpaid(sale, row, move)
    if (move?.receipt.transaction.nonce !== undefined) {
      if (sale.refusal !== undefined)
        throw new Violation(`the buyer of ${nameOf(sale)} was refused (${sale.refusal}) and then charged`)
      if (this.#unpaid.has(sale)) throw new Violation(`${nameOf(sale)} ended without money and was charged`)
    }
    if (status === 'settled' && before !== 'settled') this.#checkSettled(sale, row, move)
  }

  #checkUnpaid(sale: Sale, { status, failureReason }: Row, move: Move | undefined): void {
    this.#unpaid.add(sale)
    if (status === 'voided' && expired.has(failureReason ?? '') && this.#chain.head.timestamp < endOf(sale))
      throw new Violation(`${nameOf(sale)} is voided as expired before the chain's time reached its end`)
    if (move?.receipt.transaction.nonce !== undefined)
      throw new Violation(`${nameOf(sale)} is ${status} and was charged`)
  }

  #checkSettled(sale: Sale, { txHash, rawAmount }: Row, move: Move | undefined): void {
    if (owesNothing(sale)) return
    if (move === undefined) throw new Violation(`${nameOf(sale)} is settled without money`)
    if (!this.#isDeep(move)) throw new Violation(`${nameOf(sale)} is settled before its block is deep enough`)
    if (txHash !== move.receipt.transaction.hash)
      throw new Violation(`${nameOf(sale)} is settled by another transaction than ${txHash}`)
    if (rawAmount !== move.amount) throw new Violation(`${nameOf(sale)} took ${move.amount} and says ${rawAmount}`)
  }

  #moveOf(sale: Sale): Move | undefined {
    return this.#chain.moveOf(sale.money)
  }

  #isDeep({ block }: Move): boolean {
    return block.number <= this.#chain.finalNumber
  }

  /**
   * A relay that can share a transaction waits for one turn of all organisations and one batch; a lone one, for the
   * signers before it.
   */
  async #checkTurns(rows: readonly Row[], isHealthy: boolean): Promise<void> {
    const { all, alone } = await this.#db.one(
      PlannedRow,
      sql`select count(*) as all, count(*) filter (where travels_alone) as alone from chain_transactions`,
    )
    this.planned = { batches: Number(all - alone), alone: Number(alone) }
    const waiting = rows.filter(({ status, isCarried, isPutOff }) => status === 'settling' && !isCarried && !isPutOff)
    const lone = rows.flatMap(({ status, isAlone, claimKey }) =>
      status === 'settling' && isAlone === true ? (this.#byClaim.get(claimKey) ?? []) : [],
    )
    const stillWaiting = new Set(waiting.map(({ claimKey }) => claimKey))
    for (const { claimKey, isAlone } of rows) {
      const sale = this.#byClaim.get(claimKey)
      if (sale?.requestedAt === undefined) continue
      if (!stillWaiting.has(claimKey) || !isHealthy || !isPatient(sale)) sale.requestedAt = undefined
      else if (isAlone === true) this.#checkAlone(sale, lone)
      else if (isAlone === false && this.planned.batches - sale.requestedAt.batches > batchesAtMost)
        throw new Violation(`${nameOf(sale)} waited for ${this.planned.batches - sale.requestedAt.batches} batches`)
    }
  }

  /**
   * Each waiting organisation gets its turn before another gets a second one, and so does every signer within it. A turn sends one
   * relay of a signer, so a relay waits for as many rounds of all others as its signer has relays before it.
   */
  #checkAlone(sale: Sale, lone: readonly Sale[]): void {
    if (sale.requestedAt === undefined) return
    // One more for the organisation that sweeps.
    const organisations = new Set(lone.map(({ tenant }) => tenant.organisationId)).size + 1
    const ofTenant = lone.filter(({ tenant }) => tenant === sale.tenant).map(payerOf)
    const ofSigner = ofTenant.filter((payer) => payer === payerOf(sale)).length
    sale.requestedAt.most ??= organisations * new Set(ofTenant).size * ofSigner + aloneSlack
    const waited = this.planned.alone - sale.requestedAt.alone
    if (waited > sale.requestedAt.most) throw new Violation(`${nameOf(sale)} waited for ${waited} lone relays`)
  }

  /** Money is never reserved twice; a balance is what one node reports. */
  #checkPromised(rows: readonly Row[]): void {
    const open = rows.flatMap(({ claimKey, status }) => {
      const sale = this.#byClaim.get(claimKey)
      const isOpen = (status === 'verified' || status === 'settling') && sale?.kind === 'owes-twice'
      return isOpen && !this.#chain.shown.has(sale.money) ? [sale] : []
    })
    for (const [payer, own] of Map.groupBy(open, payerOf))
      if (own.length > 1) throw new Violation(`${payer} has ${own.length} payments open and money for one`)
  }

  /** The count of each month and the gas budget of each day agree with the records. */
  async #checkCounts(): Promise<void> {
    const [unbalanced] = await this.#db.many(
      UnbalancedRow,
      sql`
      with kept as (
        select organisation_id, to_char(created_at at time zone 'UTC', 'YYYY-MM') as period, count(*) filter (where status not in ('voided', 'settlement_failed') and has_place) as n
        from payments group by 1, 2
      ), spent as (
        select organisation_id, (created_at at time zone 'UTC')::date as day, sum(gas_reserved_nano_usd + gas_used_nano_usd) as nano_usd from payments group by 1, 2
      )
      select 'count' as what, coalesce(u.used, 0)::text as counted, coalesce(k.n, 0)::text as recorded
      from kept k full join (select * from usage_counters where kind = 'payments') u using (organisation_id, period) where coalesce(u.used, 0) <> coalesce(k.n, 0)
      union all
      select 'gas budget', coalesce(b.nano_usd, 0)::text, coalesce(s.nano_usd, 0)::text
      from spent s full join gas_budgets b using (organisation_id, day) where coalesce(b.nano_usd, 0) <> coalesce(s.nano_usd, 0)
        and organisation_id <> ${this.#sweeping}
      union all
      select 'gas budget of the sweeps', coalesce(b.nano_usd, 0)::text, 'at least ' || reserved
      from (select coalesce(sum(gas_reserved_nano_usd), 0) as reserved from sweep_transfers) as open,
        (select sum(nano_usd) as nano_usd from gas_budgets where organisation_id = ${this.#sweeping}) as b
      where coalesce(b.nano_usd, 0) < reserved`,
    )
    if (unbalanced !== undefined)
      throw new Violation(`the ${unbalanced.what} says ${unbalanced.counted}, the records ${unbalanced.recorded}`)
  }

  /** Once everything has ended, the chain and the records agree. */
  async checkEnd(statuses: ReadonlyMap<string, string>): Promise<void> {
    for (const sale of this.sales) {
      const [status, move] = [statuses.get(sale.claimKey), this.#moveOf(sale)]
      if (status === undefined) {
        if (move?.receipt.transaction.nonce !== undefined)
          throw new Violation(`${nameOf(sale)} was charged without a record`)
        continue
      }
      if (!ended.has(status)) throw new Violation(`${nameOf(sale)} never ends: it is ${status}`)
      if (this.#shaken.has(sale) || owesNothing(sale)) continue
      if ((status === 'settled') !== (move !== undefined))
        throw new Violation(
          `${nameOf(sale)} is ${status}, and its money ${move === undefined ? 'did not move' : 'moved'}`,
        )
      if (sale.isPromised && sale.isTaken && sale.refusal === undefined && status !== 'settled')
        throw new Violation(`${nameOf(sale)} was honest in quiet times and is ${status}`)
    }
    await checkSweeps(this.#db, this.#chain, { isOver: true, isShaken: this.#isShaken })
    if (!this.#isShaken) await this.#checkCharged()
  }

  /** The operator's gas costs equal what the organisations were charged, the sweeping one included, except for rounding up each relay's share. */
  async #checkCharged(): Promise<void> {
    const burnt = this.chainCost()
    const rounding = relaysAtMost * BigInt(this.#sent().length)
    const { charged } = await this.#db.one(
      z.object({ charged: z.string().transform((text) => BigInt(text)) }),
      sql`select coalesce(sum(nano_usd), 0)::text as charged from gas_budgets`,
    )
    if (charged < burnt || charged > burnt + rounding)
      throw new Violation(`the settler burned ${burnt}, and ${charged} was charged`)
  }

  #sent(): readonly SimReceipt[] {
    const receipts = this.#chain.blocks.flatMap((block) => [...block.receipts.values()])
    return receipts.filter(({ transaction }) => transaction.nonce !== undefined)
  }

  /** In billionths of a US dollar, at one per unit of gas. */
  chainCost(): bigint {
    return this.#sent().reduce((sum, { gasUsed }) => sum + gasUsed, 0n)
  }
}

const nameOf = ({ kind, entryPoint, claimKey }: Sale): string => `${kind} by ${entryPoint} (${claimKey.slice(-12)})`

function payerOf({ signed }: Sale): string {
  return signed.form === 'eip3009' ? signed.authorization.from : signed.permit.owner
}

function endOf({ signed }: Sale): bigint {
  return signed.form === 'eip3009' ? signed.authorization.validBefore : signed.permit.deadline
}

/** Whether its server charges nothing of the permitted amount: it is settled without a transaction. */
function owesNothing({ signed }: Sale): boolean {
  return signed.form === 'permit2' && signed.amount === 0n
}

function isPatient({ kind }: Sale): boolean {
  return kind === 'honest' || kind === 'contract' || kind === 'permit'
}
