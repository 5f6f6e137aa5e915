import { type Address, topics } from '@purser/protocol'
import { z } from 'zod'
import { type Db, sql } from '../../src/platform/db/db.ts'
import type { SimBlock, SimChain, SimReceipt } from './chain.ts'
import { type Intent, nameOf } from './intents.ts'
import { checkSweeps, isKeyOf, listSweepKeys } from './sweeps.ts'
import { Violation } from './violation.ts'
import { countReports } from './wallet-due.ts'
import { checkHolds } from './wallet-holds.ts'
import type { SimWallet } from './wallet-stage.ts'

const Raw = z.string().transform((text) => BigInt(text))

const Row = z.object({
  id: z.string(),
  from: z.string(),
  token: z.string(),
  rawAmount: Raw,
  rawFee: Raw,
  status: z.string(),
  reason: z.string().nullable(),
  txHash: z.string().nullable(),
  isEnded: z.boolean(),
  isUnknown: z.boolean(),
  isGasless: z.boolean(),
})
type Row = z.output<typeof Row>

/** A movement of money out of a wallet, as a block shows it. */
export interface Out {
  readonly block: SimBlock
  readonly receipt: SimReceipt
  readonly from: string
  readonly to: string
  readonly rawAmount: bigint
}

/** A deposit to a wallet; `isDirty` while its sender is listed, or has not been screened since before its block. */
export interface Inflow {
  readonly wallet: SimWallet
  readonly sender: Address
  readonly rawAmount: bigint
  isDirty: boolean
}

const hourMs = 3_600_000
/** How far apart the clocks of processes are, twice. */
const clockSlackMs = 200_000

/** Invariants after each round. */
export class WalletModel {
  readonly intents: Intent[] = []
  readonly inflows: Inflow[] = []
  /** The most USDC that may leave a master and its children in an hour, in its smallest unit. */
  readonly caps = new Map<string, bigint>()
  readonly #db: Db
  readonly #chain: SimChain
  readonly #own: ReadonlyMap<string, SimWallet>
  readonly #hasLiar: boolean
  readonly #ended = new Map<string, string>()
  /** By sender and nonce, what was signed first in each era. */
  readonly #signed = new Map<string, string>()
  /** The keys of the money of sweeps. */
  #sweepKeys: ReadonlySet<string> = new Set()
  #doubled: string | undefined
  #isShaken = false
  era = 0

  constructor(
    db: Db,
    chain: SimChain,
    { wallets, hasLiar }: { readonly wallets: readonly SimWallet[]; readonly hasLiar: boolean },
  ) {
    this.#db = db
    this.#chain = chain
    this.#own = new Map(wallets.map((wallet) => [wallet.address.toLowerCase(), wallet]))
    this.#hasLiar = hasLiar
    chain.onSigned = ({ from, nonce, to, input, value }) => {
      const key = `${this.era} ${from} ${nonce}`.toLowerCase()
      const call = `${to} ${input} ${value}`.toLowerCase()
      const known = this.#signed.get(key)
      this.#signed.set(key, known ?? call)
      if (known !== undefined && known !== call)
        this.#doubled = `${from} signed two different calls under the nonce ${nonce}`
    }
  }

  /** From now on nothing that was final is certain. */
  shake(): void {
    this.#isShaken = true
  }

  /** An older database was restored: the later records are lost, and its nonces start again. */
  restored(): void {
    this.era += 1
    this.#ended.clear()
  }

  async check(): Promise<readonly Row[]> {
    if (this.#doubled !== undefined) throw new Violation(this.#doubled)
    this.#sweepKeys = await listSweepKeys(this.#db)
    const outs = this.#outs()
    for (const intent of this.intents) this.#checkIntent(intent, outs)
    const rows = await this.#rows()
    const byMoney = Map.groupBy(rows, ({ from, token, rawAmount }) => keyOf({ from, asset: token, rawAmount }))
    for (const [key, some] of byMoney) {
      const intent = this.intents.find((one) => keyOf({ ...one, from: one.wallet.address }) === key)
      if (intent === undefined) throw new Violation(`a transfer ${some[0]?.id} that nobody requested`)
      if (some.length > 1) throw new Violation(`${nameOf(intent)} is recorded ${some.length} times`)
      if (intent.state === 'refused')
        throw new Violation(`${nameOf(intent)} was refused (${intent.refusal}) and is recorded`)
    }
    for (const row of rows) this.#checkRow(row, outs)
    await this.#checkDirty()
    await checkSweeps(this.#db, this.#chain, { isOver: false, isShaken: this.#isShaken || this.era > 0 })
    return rows
  }

  #rows(): Promise<Row[]> {
    return this.#db.many(
      Row,
      sql`select t.id, t.from_address as from, t.from_token as token, t.raw_amount::text as raw_amount, t.raw_fee::text as raw_fee, t.status, t.reason,
        t.tx_hash, t.ended_at is not null as is_ended, t.unknown_at is not null and t.left_at is null as is_unknown,
        not exists (select from transfer_steps s where s.transfer_id = t.id) as is_gasless from transfers t`,
    )
  }

  #checkIntent(intent: Intent, outs: ReadonlyMap<string, readonly Out[]>): void {
    const moved = outs.get(keyOf({ ...intent, from: intent.wallet.address })) ?? []
    if (moved.length > 1) throw new Violation(`${nameOf(intent)} left ${moved.length} times`)
    const [out] = moved
    if (out === undefined) return
    if (intent.isListed) throw new Violation(`${nameOf(intent)} left for a listed recipient`)
    if (intent.state === 'refused') throw new Violation(`${nameOf(intent)} was refused (${intent.refusal}) and left`)
    if (intent.target !== undefined && out.to !== intent.target.toLowerCase())
      throw new Violation(`${nameOf(intent)} reached ${out.to} and not ${intent.target}`)
  }

  #checkRow(row: Row, outs: ReadonlyMap<string, readonly Out[]>): void {
    const name = `the transfer ${row.id} of ${row.rawAmount} ${row.token}`
    const ending = `${row.status} ${row.reason}`
    const before = this.#ended.get(row.id)
    if (before !== undefined && (!row.isEnded || before !== ending))
      throw new Violation(`${name} was ${before} and is ${ending}`)
    if (this.#isShaken) return
    if (row.isUnknown && this.era === 0)
      throw new Violation(`nobody can say what became of ${name}, and nothing was lost`)
    if (!row.isEnded) return
    this.#ended.set(row.id, ending)
    const [out] = outs.get(keyOf({ from: row.from, asset: row.token, rawAmount: row.rawAmount })) ?? []
    const hasLeft = row.status === 'confirmed' || row.reason === 'refunded' || row.reason === 'not-received'
    if (!hasLeft && out !== undefined) throw new Violation(`${name} has failed (${row.reason}), and its money left`)
    if (!hasLeft) return
    if (out === undefined) throw new Violation(`${name} is ${ending}, and its money did not leave`)
    if (before === undefined && out.block.number > this.#chain.finalNumber)
      throw new Violation(`${name} is ${ending} before its block is deep enough`)
    if (row.txHash !== out.receipt.transaction.hash)
      throw new Violation(`${name} names the transaction ${row.txHash}, and ${out.receipt.transaction.hash} moved it`)
    if (row.reason === 'refunded' && !this.#isGivenBack(row, out))
      throw new Violation(`${name} is refunded, and nothing came back`)
  }

  /** Whether the bridge gave it back in a final block behind its own. */
  #isGivenBack({ from }: Row, { block }: Out): boolean {
    return this.#chain.blocks.slice(block.number, this.#chain.finalNumber + 1).some(({ receipts }) =>
      [...receipts.values()].some(({ transaction: { to, nonce }, logs, status }) => {
        if (nonce !== undefined || status !== '0x1' || !to.startsWith('0xb2b2')) return false
        const paid = logs.find(({ topics: [topic] }) => topic === topics.transfer)
        return paid === undefined || accountOf(paid.topics[2]) === from.toLowerCase()
      }),
    )
  }

  /** Amounts that were frozen before they could be spent must still be there. */
  async #checkDirty(): Promise<void> {
    if (this.#isShaken || this.#hasLiar || this.era > 0) return
    await checkHolds(this.#db, this.inflows)
    const { balances } = this.#chain.head.state
    for (const [address, wallet] of this.#own) {
      const dirty = this.#dirtyOf(wallet)
      const balance = balances.get(address) ?? 0n
      if (balance < dirty) throw new Violation(`${address} has ${balance} left, and ${dirty} came from listed senders`)
    }
  }

  #dirtyOf(wallet: SimWallet): bigint {
    return this.inflows.reduce((sum, one) => {
      const isHere = one.isDirty && one.wallet === wallet && this.#isMined(one)
      return isHere ? sum + one.rawAmount : sum
    }, 0n)
  }

  #isMined({ wallet, sender, rawAmount }: Inflow): boolean {
    return this.#chain.blocks.some(({ receipts }) =>
      [...receipts.values()].some(({ logs }) =>
        logs.some((log) => {
          const [topic, from, to] = log.topics
          if (topic !== topics.transfer || BigInt(log.data) !== rawAmount) return false
          return accountOf(from) === sender.toLowerCase() && accountOf(to) === wallet.address.toLowerCase()
        }),
      ),
    )
  }

  /** What left the wallets in canonical blocks without a sweep, by sender, asset and amount: a sweep may have the amount of an intent. */
  #outs(): ReadonlyMap<string, readonly Out[]> {
    const all = this.#chain.blocks.flatMap((block) =>
      [...block.receipts.values()].flatMap((receipt) => (receipt.status === '0x1' ? this.#outsOf(block, receipt) : [])),
    )
    return Map.groupBy(all, (one) => keyOf(one))
  }

  #outsOf(block: SimBlock, receipt: SimReceipt): (Out & { readonly asset: string })[] {
    const { from, to, value } = receipt.transaction
    const swept = receipt.moved.flatMap(({ key }) => (this.#sweepKeys.has(key) ? [key] : []))
    const tokens = receipt.logs.flatMap((log) => {
      const sender = accountOf(log.topics[1])
      if (log.topics[0] !== topics.transfer || !this.#own.has(sender)) return []
      const one = { from: sender, to: accountOf(log.topics[2]), rawAmount: BigInt(log.data) }
      const index = swept.findIndex((key) => isKeyOf(key, one))
      if (index >= 0) swept.splice(index, 1)
      return index >= 0 ? [] : [{ ...one, block, receipt, asset: 'USDC' }]
    })
    if (value === 0n || !this.#own.has(from.toLowerCase())) return tokens
    return [
      ...tokens,
      { block, receipt, asset: 'ETH', from: from.toLowerCase(), to: to.toLowerCase(), rawAmount: value },
    ]
  }

  /** After quiescence, records and chain must agree. */
  async checkEnd(): Promise<void> {
    const rows = await this.check()
    const open = rows.filter(({ isEnded }) => !isEnded)
    if (open.length > 0)
      throw new Violation(`${open.map(({ id, rawAmount }) => `${id} of ${rawAmount}`).join(', ')} never ends`)
    await checkSweeps(this.#db, this.#chain, { isOver: true, isShaken: this.#isShaken || this.era > 0 })
    if (this.#isShaken) return
    this.#checkCaps()
    if (this.era > 0) return
    const outs = this.#outs()
    this.#checkAttributed(outs)
    await this.#checkBooked()
    await this.#checkFees()
    await this.#checkPolicies(rows)
    await this.#checkReports(rows)
  }

  /** Every unit that left a wallet was requested: by an intent, or by a sweep. */
  #checkAttributed(outs: ReadonlyMap<string, readonly Out[]>): void {
    const wanted = new Set(this.intents.map((one) => keyOf({ ...one, from: one.wallet.address })))
    for (const [key, some] of outs)
      if (!wanted.has(key) && !key.includes(' ETH '))
        throw new Violation(`${key} left ${some.length} times, and nobody requested it`)
  }

  /** The newest final block with a movement that is to be booked; -1 without one. */
  get newestMovement(): number {
    return this.#chain.blocks
      .slice(0, this.#chain.finalNumber + 1)
      .findLastIndex(({ receipts }) => [...receipts.values()].some((receipt) => this.#bookingsOf(receipt).length > 0))
  }

  /** Each side of each movement of the token up to the depth is booked once. */
  async #checkBooked(): Promise<void> {
    const rows = await this.#db.many(
      z.object({ key: z.string() }),
      sql`select concat_ws(' ', direction, tx_hash, log_index, lower(from_address), lower(to_address), raw_amount::text) as key from wallet_transactions where status = 'confirmed'`,
    )
    const booked = rows.map(({ key }) => key).toSorted()
    const shown = this.#chain.blocks
      .slice(0, this.#chain.finalNumber + 1)
      .flatMap(({ receipts }) => [...receipts.values()].flatMap((receipt) => this.#bookingsOf(receipt)))
    const expected = shown.toSorted()
    const missing = expected.find((key) => !booked.includes(key))
    if (missing !== undefined) throw new Violation(`${missing} is not booked`)
    const invented = booked.find((key) => !expected.includes(key))
    if (invented !== undefined) throw new Violation(`${invented} is booked and never happened`)
    if (booked.length !== expected.length) throw new Violation('a movement is booked twice')
  }

  #bookingsOf({ logs, transaction, firstLog }: SimReceipt): string[] {
    return logs.flatMap((log, index) => {
      if (log.topics[0] !== topics.transfer) return []
      const [from, to] = [accountOf(log.topics[1]), accountOf(log.topics[2])]
      const facts = [transaction.hash, firstLog + index, from, to, BigInt(log.data)].join(' ')
      return [...(this.#own.has(to) ? [`in ${facts}`] : []), ...(this.#own.has(from) ? [`out ${facts}`] : [])]
    })
  }

  /** The recorded costs of transfers must equal the fees of their transactions. */
  async #checkFees(): Promise<void> {
    const burnt = [...this.#chain.blocks].flatMap(({ receipts, baseFee }) =>
      [...receipts.values()].flatMap(({ transaction: { from, nonce }, gasUsed }) =>
        nonce !== undefined && this.#own.has(from.toLowerCase()) ? [gasUsed * baseFee] : [],
      ),
    )
    const { sum } = await this.#db.one(
      z.object({ sum: Raw }),
      sql`select coalesce(sum(raw_fee), 0)::text as sum from transfer_steps`,
    )
    const real = burnt.reduce((total, wei) => total + wei, 0n)
    if (sum !== real) throw new Violation(`the wallets burnt ${real} wei, and their transfers say ${sum}`)
  }

  /** The spending that policies count must equal the amount that left; failed and returned transfers must not count. */
  async #checkPolicies(rows: readonly Row[]): Promise<void> {
    const { sum } = await this.#db.one(
      z.object({ sum: Raw }),
      sql`select (coalesce(sum(atto_amount), 0) / 1e12)::numeric(78, 0)::text as sum from policy_reservations where token = 'USDC' and released_at is null`,
    )
    const outs = this.#outs()
    const left = this.intents.reduce((total, one) => {
      const isCounted =
        one.asset === 'USDC' && outs.has(keyOf({ ...one, from: one.wallet.address })) && !isToOwnMaster(one, this.#own)
      const row = rows.find((known) => known.rawAmount === one.rawAmount && known.token === 'USDC')
      return isCounted && row?.reason !== 'refunded' ? total + one.rawAmount : total
    }, 0n)
    if (sum !== left) throw new Violation(`policies count ${sum} USDC, and ${left} left`)
  }

  /** In no hour more than the cap was requested and left. */
  #checkCaps(): void {
    const outs = this.#outs()
    for (const [masterId, cap] of this.caps) {
      const left = this.intents.filter((one) => {
        const isOwn = one.wallet.masterId === masterId && one.asset === 'USDC' && one.era === this.era
        return isOwn && outs.has(keyOf({ ...one, from: one.wallet.address })) && !isToOwnMaster(one, this.#own)
      })
      for (const { requestedAtMs: until } of left) {
        const within = left.filter(({ requestedAtMs: at }) => at <= until && at > until - hourMs + clockSlackMs)
        const sum = within.reduce((total, { rawAmount }) => total + rawAmount, 0n)
        if (sum > cap) throw new Violation(`${sum} left ${masterId} in an hour, and ${cap} may`)
      }
    }
  }

  /** Each caller learns the end once: from the response or from one event. */
  async #checkReports(rows: readonly Row[]): Promise<void> {
    const counts = await countReports(this.#db)
    const known = new Set(rows.map(({ id }) => id))
    for (const intent of this.intents) {
      if (intent.state !== 'accepted' || intent.kind === 'withdrawal' || intent.id === undefined) continue
      if (!known.has(intent.id)) throw new Violation(`${nameOf(intent)} was accepted and is not recorded`)
      if (counts.get(intent.id) !== 1)
        throw new Violation(`${nameOf(intent)} ended, and ${counts.get(intent.id) ?? 0} events say so`)
    }
  }

  get movedCount(): number {
    const outs = this.#outs()
    return this.intents.filter((one) => outs.has(keyOf({ ...one, from: one.wallet.address }))).length
  }

  /** The movement that a stored transfer made, where a block shows it. */
  outOf({
    fromAddress: from,
    fromToken: asset,
    rawAmount,
  }: {
    readonly fromAddress: string
    readonly fromToken: string
    readonly rawAmount: bigint
  }): Out | undefined {
    return this.#outs().get(keyOf({ from, asset, rawAmount }))?.[0]
  }

  /** Whether records were lost, or blocks that were final. */
  get isForgiving(): boolean {
    return this.#isShaken || this.era > 0
  }

  /** When all is quiet: what the service says of a wallet's token. */
  checkFunds(
    { address }: SimWallet,
    found: { readonly rawAmount: bigint; readonly reserved: bigint } | undefined,
  ): void {
    const balance = this.#chain.head.state.balances.get(address.toLowerCase()) ?? 0n
    if (found?.reserved !== 0n) throw new Violation(`${found?.reserved} of ${address} stays reserved`)
    if (found.rawAmount !== balance)
      throw new Violation(`${address} has ${found.rawAmount} by its records, and ${balance} by the chain`)
  }
}

function isToOwnMaster({ kind, wallet, recipient }: Intent, own: ReadonlyMap<string, SimWallet>): boolean {
  return kind === 'transfer' && wallet.isChild && own.get(recipient.toLowerCase())?.id === wallet.masterId
}

function keyOf({ from, asset, rawAmount }: Readonly<{ from: string; asset: string; rawAmount: bigint }>): string {
  return `${from.toLowerCase()} ${asset} ${rawAmount}`
}

function accountOf(topic: string | undefined): string {
  return `0x${(topic ?? '').slice(26).toLowerCase()}`
}
