import { createHash } from 'node:crypto'
import type { Address, Hex } from '@purser/protocol'
import { keccak256, parseTransaction } from 'viem'
import type { Chance } from './chance.ts'
import {
  type Authorization,
  decodeCall,
  innerCalls,
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
  readonly calls: readonly { readonly call: TokenCall; readonly allowFailure: boolean }[]
  readonly gasLimit: bigint
  readonly fee: bigint
}

export interface SimReceipt {
  readonly transaction: SimTransaction
  readonly status: '0x1' | '0x0'
  readonly gasUsed: bigint
  readonly logs: readonly SimLog[]
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

/** The wei that each unit of gas costs in every block. */
export const gasPrice = 1_000_000_000n

/** A chain of blocks with one token and one settler. Nodes see a part of it. */
export class SimChain {
  readonly token: Address
  /** The canonical blocks; replaced, never changed, so that whoever has it has a view of its own. */
  blocks: readonly SimBlock[]
  /** Every raw transaction that was ever sent, also by a node that kept it to itself. */
  readonly #waiting = new Map<string, SimTransaction>()
  readonly #chance: Chance
  #made = 0

  constructor(token: Address, chance: Chance, timestamp: bigint, balances: ReadonlyMap<string, bigint>) {
    this.token = token
    this.#chance = chance
    const state = { balances: new Map(balances), used: new Set<string>(), burners: new Set<string>() }
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
    const calls = innerCalls(to ?? '0x', data).map((inner) => ({
      call: decodeCall(inner.data),
      allowFailure: inner.allowFailure,
    }))
    this.#waiting.set(hash, { hash, nonce: BigInt(nonce), calls, gasLimit: gas, fee: maxFeePerGas })
    return { hash }
  }

  /** Somebody else's transaction of one call. */
  addStranger(call: TokenCall): void {
    const hash = this.#newHash()
    this.#waiting.set(hash, {
      hash,
      nonce: undefined,
      calls: [{ call, allowFailure: false }],
      gasLimit: 300_000n,
      fee: 0n,
    })
  }

  mine(timestamp: bigint): void {
    const parent = this.head
    const { balances, used, burners } = parent.state
    const state = { balances: new Map(balances), used: new Set(used), burners: new Set(burners) }
    const receipts = new Map<string, SimReceipt>()
    let settlerNonce = parent.settlerNonce
    const now = timestamp > parent.timestamp ? timestamp : parent.timestamp + 1n
    for (const transaction of this.#toMine()) {
      if (transaction.nonce !== undefined && transaction.nonce !== settlerNonce) continue
      if (transaction.nonce !== undefined) settlerNonce += 1n
      receipts.set(transaction.hash, runTransaction(this.token, state, transaction, now))
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
    for (const [hash, { nonce }] of this.#waiting)
      if (receipts.has(hash) || (nonce !== undefined && nonce < settlerNonce)) this.#waiting.delete(hash)
  }

  /** Undoes the newest blocks. Their transactions wait again, or are forgotten by all who had them. */
  reorganize(depth: number, forgotten: number): void {
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

  /** The receipt that moved this authorization's money, and its block. */
  moveOf(
    { from, to, value, nonce }: Authorization,
    blocks = this.blocks,
  ): { readonly block: SimBlock; readonly receipt: SimReceipt } | undefined {
    for (const block of blocks)
      for (const receipt of block.receipts.values()) {
        const has = receipt.logs.some((log, index) => {
          const moved = receipt.logs[index + 1]
          return (
            isWord(log.topics[1], from) &&
            log.topics[2]?.toLowerCase() === nonce.toLowerCase() &&
            log.topics.length === 3 &&
            moved !== undefined &&
            log.data === '0x' &&
            isWord(moved.topics[2], to) &&
            BigInt(moved.data) === value
          )
        })
        if (has) return { block, receipt }
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

function isWord(word: string | undefined, account: string): boolean {
  return word?.slice(26).toLowerCase() === account.slice(2).toLowerCase()
}

function runTransaction(token: Address, state: TokenState, transaction: SimTransaction, now: bigint): SimReceipt {
  const logs: SimLog[] = []
  let gas = 25_000n
  for (const { call, allowFailure } of transaction.calls) {
    const isSpent = gas >= transaction.gasLimit
    const ran = isSpent ? ({ outcome: 'burnt' } as const) : runCall(token, state, call, { now, isTrial: false })
    if (ran.outcome === 'ok') logs.push(...ran.logs)
    gas = ran.outcome === 'burnt' ? transaction.gasLimit : gas + ran.gas
    if (ran.outcome !== 'ok' && !allowFailure) return { transaction, status: '0x0', gasUsed: gas, logs: [] }
  }
  return { transaction, status: '0x1', gasUsed: gas, logs }
}
