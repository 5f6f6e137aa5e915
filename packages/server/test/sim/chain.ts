import { createHash } from 'node:crypto'
import type { Address, Hex } from '@purser/protocol'
import { keccak256, parseTransaction } from 'viem'
import type { Chance } from './chance.ts'
import {
  addCoin,
  coinOf,
  copyOf,
  decodeCall,
  emptyState,
  innerCalls,
  type Moved,
  pay,
  type Rules,
  runCall,
  type SimLog,
  type TokenCall,
  type TokenState,
} from './token.ts'

/** A transaction that waits to be mined: signed by an account of the service, or by anybody else. */
export interface SimTransaction {
  readonly hash: Hex
  /** The nonce of a service account; undefined for a transaction of another sender. */
  readonly nonce: bigint | undefined
  readonly from: string
  readonly to: string
  readonly input: Hex
  readonly value: bigint
  readonly calls: readonly {
    readonly call: TokenCall
    readonly allowFailure: boolean
    /** Most gas that it may use; undefined for all of the transaction's. */
    readonly bound?: bigint | undefined
  }[]
  readonly gasLimit: bigint
  readonly fee: bigint
}

export interface SimReceipt {
  readonly transaction: SimTransaction
  readonly status: '0x1' | '0x0'
  readonly gasUsed: bigint
  readonly logs: readonly SimLog[]
  /** The signed money that it moved. */
  readonly moved: readonly Moved[]
  /** The place of its first log in its block. */
  readonly firstLog: number
}

export interface SimBlock {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: bigint
  readonly receipts: ReadonlyMap<string, SimReceipt>
  readonly state: TokenState
  /** How many transactions accounts have sent, by their addresses in lower case. */
  readonly counts: ReadonlyMap<string, bigint>
  /** What a unit of gas costs in it, in wei. */
  readonly baseFee: bigint
}

/** The sender of what is minted. */
const nobody: Address = `0x${'0'.repeat(40)}`
const stranger: Address = `0x${'5'.repeat(40)}`

/** The price of a unit of gas, in wei, unless the chain's `baseFee` differs. */
const gasPrice = 1_000_000_000n

interface Beginning {
  readonly timestamp: bigint
  /** The depth at which a block is final, itself included. */
  readonly depth: number
}

export interface Move {
  readonly block: SimBlock
  readonly receipt: SimReceipt
  readonly amount: bigint
}

/** A chain of blocks with one token. Nodes see a part of it. */
export class SimChain {
  readonly rules: Rules
  /** What keys signed, for the token's rules. */
  readonly signed = new Map<string, string>()
  /** The canonical blocks. The array is replaced, never changed, so that each holder has a stable view. */
  blocks: readonly SimBlock[]
  /** Every raw transaction that was ever sent, also to a node that did not forward it. */
  readonly #waiting = new Map<string, SimTransaction>()
  readonly #chance: Chance
  #made = 0
  /** Keys of money that any block ever showed moving, also one that was undone. */
  readonly shown = new Set<string>()

  /** No reorganization within the depth reaches the block of this number. */
  finalNumber = 0
  /** Of the next block. */
  baseFee = gasPrice
  readonly #depth: number

  constructor(rules: Omit<Rules, 'signed'>, chance: Chance, { timestamp, depth }: Beginning) {
    this.#depth = depth
    this.rules = { ...rules, signed: this.signed }
    this.#chance = chance
    this.blocks = [
      {
        number: 0,
        hash: this.#newHash(),
        parentHash: `0x${'0'.repeat(64)}`,
        timestamp,
        receipts: new Map(),
        state: emptyState(),
        counts: new Map(),
        baseFee: gasPrice,
      },
    ]
  }

  get head(): SimBlock {
    const head = this.blocks.at(-1)
    if (head === undefined) throw new Error('a chain has a first block')
    return head
  }

  /** Mints the token in the first block, with the logs that a node shows. Nodes must not have seen the chain before. */
  mint(mints: readonly { readonly to: Address; readonly value: bigint }[]): void {
    const first = this.head
    const sum = mints.reduce((total, { value }) => total + value, 0n)
    first.state.balances.set(nobody, sum)
    const logs = mints.flatMap((one) => pay(this.rules, first.state, { from: nobody, ...one })?.logs ?? [])
    const own = {
      hash: this.#newHash(),
      nonce: undefined,
      from: stranger,
      to: this.rules.token,
      input: '0x',
      value: 0n,
    } as const
    const transaction = { ...own, calls: [], gasLimit: 300_000n, fee: 0n }
    const receipt = { transaction, status: '0x1', gasUsed: 60_000n, logs, moved: [], firstLog: 0 } as const
    this.blocks = [{ ...first, receipts: new Map([[own.hash, receipt]]) }]
  }

  /** Accepts a raw transaction of an account of the service. */
  take(raw: Hex): { readonly hash: Hex } | { readonly refusal: string } {
    const { nonce = 0, to = '0x', data: input = '0x', value = 0n, gas = 0n, maxFeePerGas = 0n } = parseTransaction(raw)
    const hash = keccak256(raw)
    const from = this.rules.senderOf(raw)
    this.onSigned?.({ from, nonce: BigInt(nonce), to: to ?? '0x', input, value })
    if (BigInt(nonce) < countIn(this.head, from)) return { refusal: 'nonce too low' }
    if (this.#waiting.has(hash)) return { refusal: 'already known' }
    const rivals = [...this.#waiting.values()].filter((one) => one.from === from && one.nonce === BigInt(nonce))
    if (rivals.some(({ fee }) => maxFeePerGas * 10n < fee * 11n))
      return { refusal: 'replacement transaction underpriced' }
    const calls = innerCalls(to ?? '0x', input).map(({ target, data, allowFailure, gas: bound }) => ({
      call: decodeCall(this.rules, { target, data, value, sender: from }),
      allowFailure,
      bound,
    }))
    const own = { hash, nonce: BigInt(nonce), from, to: to ?? '0x', input, value, calls }
    const transaction = { ...own, gasLimit: gas, fee: maxFeePerGas }
    if (!this.#canPay(this.head.state, transaction)) return { refusal: 'insufficient funds for gas * price + value' }
    this.#waiting.set(hash, transaction)
    return { hash }
  }

  /** Learns of all that was ever signed and sent. */
  onSigned:
    | ((signed: Pick<SimTransaction, 'from' | 'to' | 'input' | 'value'> & { readonly nonce: bigint }) => void)
    | undefined

  /** The account's transactions in blocks, and those behind them that wait without a gap. */
  pendingCount(account: string): bigint {
    const own = [...this.#waiting.values()].filter(({ from }) => from.toLowerCase() === account.toLowerCase())
    const nonces = new Set(own.map(({ nonce }) => nonce))
    let count = countIn(this.head, account)
    while (nonces.has(count)) count += 1n
    return count
  }

  #canPay(state: TokenState, { from, nonce, gasLimit, fee, value }: Omit<SimTransaction, 'calls'>): boolean {
    if (this.rules.contracts === undefined || nonce === undefined) return true
    return coinOf(state, from) >= gasLimit * fee + value
  }

  /** Adds a transaction of another sender; `sent` is its recipient and call data, where these are read. */
  addStranger(
    wanted: TokenCall | readonly TokenCall[],
    sent: { readonly to: string; readonly input: Hex } = { to: '0x', input: '0x' },
  ): void {
    const hash = this.#newHash()
    const calls = [wanted].flat().map((call) => ({ call, allowFailure: false }))
    const own = { hash, nonce: undefined, from: stranger, value: 0n, ...sent, calls }
    this.#waiting.set(hash, { ...own, gasLimit: 300_000n, fee: 0n })
  }

  mine(timestamp: bigint): void {
    const parent = this.head
    const state = copyOf(parent.state)
    const receipts = new Map<string, SimReceipt>()
    const counts = new Map(parent.counts)
    const { baseFee } = this
    let logs = 0
    const now = timestamp > parent.timestamp ? timestamp : parent.timestamp + 1n
    for (const transaction of this.#toMine()) {
      const { nonce, from } = transaction
      if (nonce !== undefined) {
        if (nonce !== countIn({ counts }, from) || transaction.fee < baseFee) continue
        if (!this.#canPay(state, transaction)) continue
        counts.set(from.toLowerCase(), nonce + 1n)
      }
      const receipt = { ...runTransaction(this.rules, state, transaction, now), firstLog: logs }
      if (this.rules.contracts !== undefined && nonce !== undefined) addCoin(state, from, -receipt.gasUsed * baseFee)
      logs += receipt.logs.length
      receipts.set(transaction.hash, receipt)
      for (const { key } of receipt.moved) this.shown.add(key)
    }
    const block = {
      number: parent.number + 1,
      hash: this.#newHash(),
      parentHash: parent.hash,
      timestamp: now,
      receipts,
      state,
      counts,
      baseFee,
    }
    this.blocks = [...this.blocks, block]
    this.finalNumber = Math.max(this.finalNumber, block.number - this.#depth + 1)
    for (const [hash, { nonce, from }] of this.#waiting)
      if (receipts.has(hash) || (nonce !== undefined && nonce < countIn(block, from))) this.#waiting.delete(hash)
  }

  /** Undoes the newest blocks that are not final. Their transactions wait again, or are dropped from every mempool. */
  reorganize(blocks: number, forgotten: number): void {
    this.#undo(Math.min(blocks, this.head.number - this.finalNumber), forgotten)
  }

  /** Undoes the newest final block, everything above it, and this many below. */
  reorganizeFinal(below: number, forgotten: number): void {
    this.#undo(Math.min(this.head.number - 1, this.head.number - this.finalNumber + 1 + below), forgotten)
    this.finalNumber = Math.max(0, this.head.number - this.#depth + 1)
  }

  #undo(depth: number, forgotten: number): void {
    if (depth <= 0) return
    const gone = this.blocks.slice(-depth)
    this.blocks = this.blocks.slice(0, -depth)
    for (const { receipts } of gone)
      for (const { transaction } of receipts.values())
        if (!this.#chance.happens(forgotten)) this.#waiting.set(transaction.hash, transaction)
  }

  /** Drops every waiting transaction, as a restarted mempool does. */
  forgetWaiting(): void {
    this.#waiting.clear()
  }

  /** The receipt that moved this money, its block, and the amount. */
  moveOf(key: string): Move | undefined {
    for (const block of this.blocks)
      for (const receipt of block.receipts.values()) {
        const moved = receipt.moved.find((one) => one.key === key)
        if (moved !== undefined) return { block, receipt, amount: moved.amount }
      }
    return undefined
  }

  /** In random order, except for the nonces of each account. */
  #toMine(): readonly SimTransaction[] {
    const chosen = [...this.#waiting.values()].filter(() => this.#chance.happens(0.9))
    const placed = chosen.map((transaction) => {
      const last = this.#chance.happens(0.5) ? 0n : 1_000_000n
      return { transaction, order: transaction.nonce ?? last, place: this.#chance.next() }
    })
    return placed
      .toSorted((left, right) => Number(left.order - right.order) || left.place - right.place)
      .map(({ transaction }) => transaction)
  }

  #newHash(): Hex {
    this.#made += 1
    return `0x${createHash('sha256').update(`${this.#made} ${this.#chance.next()}`).digest('hex')}`
  }
}

/** How many transactions an account has sent up to the block. */
export function countIn({ counts }: Pick<SimBlock, 'counts'>, account: string): bigint {
  return counts.get(account.toLowerCase()) ?? 0n
}

/** The contract that a batch creates. */
const created: Address = `0x${'c'.repeat(40)}`
const wordDigits = (value: bigint): string => value.toString(16).padStart(64, '0')

function runTransaction(
  rules: Rules,
  state: TokenState,
  transaction: SimTransaction,
  now: bigint,
): Omit<SimReceipt, 'firstLog'> {
  const logs: SimLog[] = []
  const moved: Moved[] = []
  // The changes of a failed transaction are undone.
  const trial = copyOf(state)
  let gas = transaction.input === '0x' ? 20_999n : 25_000n
  const used: bigint[] = []
  for (const { call, allowFailure, bound } of transaction.calls) {
    const isSpent = gas >= transaction.gasLimit
    const around = { now, isTrial: false, sender: transaction.from }
    const ran = isSpent ? ({ outcome: 'burnt' } as const) : runCall(rules, trial, call, around)
    if (ran.outcome === 'ok') {
      logs.push(...ran.logs)
      if (ran.moved !== undefined) moved.push(ran.moved)
    }
    const own = ran.outcome === 'burnt' ? (bound ?? transaction.gasLimit - gas) : ran.gas
    gas += own
    if (bound !== undefined) used.push(own)
    if (ran.outcome !== 'ok' && !allowFailure) return { transaction, status: '0x0', gasUsed: gas, logs: [], moved: [] }
  }
  Object.assign(state, trial)
  if (used.length > 0) logs.push({ address: created, topics: [], data: `0x${used.map(wordDigits).join('')}` })
  return { transaction, status: '0x1', gasUsed: gas, logs, moved }
}
