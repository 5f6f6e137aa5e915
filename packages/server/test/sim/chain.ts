import { createHash } from 'node:crypto'
import type { Address, Hex } from '@purser/protocol'
import { keccak256, parseTransaction } from 'viem'
import type { Chance } from './chance.ts'
import {
  copyOf,
  decodeCall,
  innerCalls,
  type Moved,
  type Rules,
  runCall,
  type SimLog,
  type TokenCall,
  type TokenState,
} from './token.ts'

/** What waits to be mined: signed by the settler, or by anybody else. */
export interface SimTransaction {
  readonly hash: Hex
  /** The settler's nonce; undefined for a transaction of somebody else. */
  readonly nonce: bigint | undefined
  readonly from: string
  readonly to: string
  readonly input: Hex
  readonly calls: readonly { readonly call: TokenCall; readonly allowFailure: boolean }[]
  readonly gasLimit: bigint
  readonly fee: bigint
}

export interface SimReceipt {
  readonly transaction: SimTransaction
  readonly status: '0x1' | '0x0'
  readonly gasUsed: bigint
  readonly logs: readonly SimLog[]
  /** Whose signed money it moved. */
  readonly moved: readonly Moved[]
}

export interface SimBlock {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestamp: bigint
  readonly receipts: ReadonlyMap<string, SimReceipt>
  readonly state: TokenState
  readonly settlerNonce: bigint
}

const stranger: Address = `0x${'5'.repeat(40)}`

/** The wei that each unit of gas costs in every block. */
export const gasPrice = 1_000_000_000n

interface Beginning {
  readonly timestamp: bigint
  /** Blocks after which one is final, itself among them. */
  readonly depth: number
}

export interface Move {
  readonly block: SimBlock
  readonly receipt: SimReceipt
  readonly amount: bigint
}

/** A chain of blocks with one token and one settler. Nodes see a part of it. */
export class SimChain {
  readonly rules: Rules
  /** What keys signed, as its rules know it. */
  readonly signed = new Map<string, string>()
  /** The canonical blocks; replaced, never changed, so that whoever has it has a view of its own. */
  blocks: readonly SimBlock[]
  /** Every raw transaction that was ever sent, also by a node that kept it to itself. */
  readonly #waiting = new Map<string, SimTransaction>()
  readonly #chance: Chance
  #made = 0
  /** Keys of money that a block ever showed moving, also one that is gone. */
  readonly shown = new Set<string>()

  /** No reorganization within the depth comes to the block of this number any more. */
  finalNumber = 0
  readonly #depth: number

  constructor(rules: Omit<Rules, 'signed'>, chance: Chance, { timestamp, depth }: Beginning) {
    this.#depth = depth
    this.rules = { ...rules, signed: this.signed }
    this.#chance = chance
    const state = copyOf({ balances: new Map(), used: new Set(), permits: new Set(), burners: new Set() })
    this.blocks = [
      {
        number: 0,
        hash: this.#newHash(),
        parentHash: `0x${'0'.repeat(64)}`,
        timestamp,
        receipts: new Map(),
        state,
        settlerNonce: 0n,
      },
    ]
  }

  get head(): SimBlock {
    const head = this.blocks.at(-1)
    if (head === undefined) throw new Error('a chain has a first block')
    return head
  }

  /** Takes a raw transaction of the settler. */
  take(raw: Hex): { readonly hash: Hex } | { readonly refusal: string } {
    const { nonce = 0, to, data = '0x', gas = 0n, maxFeePerGas = 0n } = parseTransaction(raw)
    const hash = keccak256(raw)
    if (BigInt(nonce) < this.head.settlerNonce) return { refusal: 'nonce too low' }
    if (this.#waiting.has(hash)) return { refusal: 'already known' }
    const rivals = [...this.#waiting.values()].filter((one) => one.nonce === BigInt(nonce))
    if (rivals.some(({ fee }) => maxFeePerGas * 10n < fee * 11n))
      return { refusal: 'replacement transaction underpriced' }
    const calls = innerCalls(to ?? '0x', data).map(({ target, data: input, allowFailure }) => ({
      call: decodeCall(target, input),
      allowFailure,
    }))
    const from = this.rules.settler
    const own = { hash, nonce: BigInt(nonce), from, to: to ?? '0x', input: data, calls }
    this.#waiting.set(hash, { ...own, gasLimit: gas, fee: maxFeePerGas })
    return { hash }
  }

  /** Somebody else's transaction; `sent` is what it says to whom, where anybody reads that. */
  addStranger(
    wanted: TokenCall | readonly TokenCall[],
    sent: { readonly to: string; readonly input: Hex } = { to: '0x', input: '0x' },
  ): void {
    const hash = this.#newHash()
    const calls = [wanted].flat().map((call) => ({ call, allowFailure: false }))
    this.#waiting.set(hash, { hash, nonce: undefined, from: stranger, ...sent, calls, gasLimit: 300_000n, fee: 0n })
  }

  mine(timestamp: bigint): void {
    const parent = this.head
    const state = copyOf(parent.state)
    const receipts = new Map<string, SimReceipt>()
    let settlerNonce = parent.settlerNonce
    const now = timestamp > parent.timestamp ? timestamp : parent.timestamp + 1n
    for (const transaction of this.#toMine()) {
      if (transaction.nonce !== undefined && transaction.nonce !== settlerNonce) continue
      if (transaction.nonce !== undefined) settlerNonce += 1n
      const receipt = runTransaction(this.rules, state, transaction, now)
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
      settlerNonce,
    }
    this.blocks = [...this.blocks, block]
    this.finalNumber = Math.max(this.finalNumber, block.number - this.#depth + 1)
    for (const [hash, { nonce }] of this.#waiting)
      if (receipts.has(hash) || (nonce !== undefined && nonce < settlerNonce)) this.#waiting.delete(hash)
  }

  /** Undoes the newest blocks, as far as they are not final. Their transactions wait again, or are forgotten by all who had them. */
  reorganize(blocks: number, forgotten: number): void {
    this.#undo(Math.min(blocks, this.head.number - this.finalNumber), forgotten)
  }

  /** Undoes the newest final block, everything above it, and so many below. */
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

  /** Every transaction that waits is gone, as from a mempool that was restarted. */
  forgetWaiting(): void {
    this.#waiting.clear()
  }

  /** The receipt that moved this money, its block, and how much it moved. */
  moveOf(key: string): Move | undefined {
    for (const block of this.blocks)
      for (const receipt of block.receipts.values()) {
        const moved = receipt.moved.find((one) => one.key === key)
        if (moved !== undefined) return { block, receipt, amount: moved.amount }
      }
    return undefined
  }

  /** In an order that only chance knows, but for the settler's nonces. */
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

function runTransaction(rules: Rules, state: TokenState, transaction: SimTransaction, now: bigint): SimReceipt {
  const logs: SimLog[] = []
  const moved: Moved[] = []
  // What a transaction that fails changed is undone.
  const trial = copyOf(state)
  let gas = 25_000n
  for (const { call, allowFailure } of transaction.calls) {
    const isSpent = gas >= transaction.gasLimit
    const around = { now, isTrial: false, sender: transaction.from }
    const ran = isSpent ? ({ outcome: 'burnt' } as const) : runCall(rules, trial, call, around)
    if (ran.outcome === 'ok') {
      logs.push(...ran.logs)
      if (ran.moved !== undefined) moved.push(ran.moved)
    }
    gas = ran.outcome === 'burnt' ? transaction.gasLimit : gas + ran.gas
    if (ran.outcome !== 'ok' && !allowFailure) return { transaction, status: '0x0', gasUsed: gas, logs: [], moved: [] }
  }
  Object.assign(state, trial)
  return { transaction, status: '0x1', gasUsed: gas, logs, moved }
}
