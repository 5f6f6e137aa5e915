import { isRecord } from '../../src/chain/rpc/rpc.ts'
import type { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import { quantity, shownLogs, shownReceipt, shownTransaction } from './nodes.ts'
import type { Signed } from './signed.ts'
import { logsOfMoney, settleOf } from './signed.ts'
import { signatureOf } from './words.ts'

/** The false history that a liar's answers support; they are all consistent with it. `noise`: anything. */
export const themes = ['all-paid', 'all-expired', 'nothing-happened', 'no-receipts', 'ahead', 'noise'] as const
/** `hides-deposits`: leaves half of the transactions out of every range of logs, always the same. */
export type Theme = (typeof themes)[number] | 'hides-deposits'

/** Replaces true responses by lies. */
export interface Liar {
  theme: Theme
  /** Whether it lies to every question while it lies. */
  readonly isConstant: boolean
  lie(method: string, params: readonly unknown[], truth: unknown): unknown
}

const farBelow = 3
const farAhead = 6

/**
 * The most harmful lies: money that did not move, nonces that are used or not, times that are past, blocks that do not
 * exist.
 */
export function liarAbout(chain: SimChain, chance: Chance, signed: () => readonly Signed[]): Liar {
  /** Transactions that it has reported in its blocks. */
  const invented = new Set<string>()
  const receiptOf = (hash: string): unknown => {
    invented.add(hash)
    const logs = signed().flatMap((one) => logsOfMoney(chain.rules, one))
    return shownReceipt(deep(), { transaction: { hash }, status: '0x1', gasUsed: 60_000n, logs })
  }
  /** The true object, reported as successful, with the logs of every signed transfer. */
  const succeeded = (truth: object): unknown => ({
    ...truth,
    status: '0x1',
    logs: signed().flatMap((one) => logsOfMoney(chain.rules, one)),
  })
  const deep = () => chain.blocks.at(-1 - farBelow) ?? chain.head
  /** Transfers of everything that was signed, each in a transaction that does not exist. */
  const inventedLogs = (filter: unknown): unknown =>
    signed().flatMap((one, index) =>
      shownLogs(deep(), signatureOf(String(index)), logsOfMoney(chain.rules, one), filter),
    )
  const inventedTransaction = (hash: string, truth: unknown): unknown => {
    const sent = signed()
      .map((one, index) => ({ one, index }))
      .find(({ index }) => signatureOf(String(index)) === hash)
    const settle = sent === undefined ? undefined : settleOf(sent.one)
    return settle === undefined ? truth : shownTransaction(hash, settle)
  }
  const lies: Readonly<Record<Theme, (method: string, first: unknown, truth: unknown) => unknown>> = {
    'all-paid': (method, first, truth) => {
      const hash = String(first)
      if (method === 'eth_getTransactionReceipt') return isRecord(truth) ? succeeded(truth) : receiptOf(hash)
      if (method === 'eth_getLogs') return inventedLogs(first)
      if (method === 'eth_getTransactionByHash') return inventedTransaction(hash, truth)
      if (method === 'eth_getTransactionCount') return quantity(BigInt(String(truth)) + 5n)
      if (method === 'eth_call') return turned(truth, '1')
      if (method !== 'eth_getBlockByNumber' || !isRecord(truth)) return truth
      const transactions = Array.isArray(truth.transactions) ? [...truth.transactions, ...invented] : truth.transactions
      return { ...truth, transactions }
    },
    'all-expired': (method, _, truth) => {
      if (method === 'eth_call') return turned(truth, '0')
      if (method === 'eth_getTransactionReceipt') return null
      return method === 'eth_getBlockByNumber' ? lieOfBlock(truth, 100_000n, 0n) : truth
    },
    'nothing-happened': (method, _, truth) => {
      if (method === 'eth_call') return turned(truth, '0')
      if (method === 'eth_getTransactionReceipt') return null
      if (method === 'eth_getTransactionCount') return '0x0'
      return method === 'eth_getLogs' ? [] : truth
    },
    'no-receipts': (method, _, truth) => (method === 'eth_getTransactionReceipt' ? null : truth),
    // What is in a block is true, but the block is reported as deep.
    ahead: (method, first, truth) => {
      if (method === 'eth_blockNumber') return quantity(chain.head.number + farAhead)
      return method === 'eth_getBlockByNumber' && first === 'latest' ? lieOfBlock(truth, 60n, BigInt(farAhead)) : truth
    },
    'hides-deposits': (method, _, truth) =>
      method === 'eth_getLogs' && Array.isArray(truth) ? truth.filter((log) => !isHidden(log)) : truth,
    noise: (method, first, truth) => {
      if (method === 'eth_getTransactionReceipt') return chance.happens(0.7) ? receiptOf(String(first)) : null
      if (method === 'eth_getBlockByNumber')
        return lieOfBlock(truth, chance.pick([0n, 100n, 100_000n]), chance.pick([0n, 3n, 30n]))
      if (method === 'eth_getTransactionCount') return quantity(chance.below(6))
      if (method === 'eth_blockNumber') return quantity(chain.head.number + chance.below(20))
      if (method === 'eth_getLogs') return []
      if (method === 'eth_getCode') return '0x'
      return method === 'eth_call' ? turned(truth, chance.pick(['0', '1'])) : truth
    },
  }
  const liar: Liar = {
    theme: 'noise',
    get isConstant() {
      return liar.theme === 'hides-deposits'
    },
    lie: (method, params, truth) => lies[liar.theme](method, params[0], truth),
  }
  return liar
}

function isHidden(log: unknown): boolean {
  return isRecord(log) && /[02468ace]$/.test(String(log.transactionHash))
}

function lieOfBlock(truth: unknown, later: bigint, ahead: bigint): unknown {
  if (!isRecord(truth)) return truth
  const more = (value: unknown, by: bigint): string => quantity(BigInt(String(value)) + by)
  return { ...truth, number: more(truth.number, ahead), timestamp: more(truth.timestamp, later) }
}

/** Replaces the last digit, which makes a reading a yes or a no. */
function turned(truth: unknown, digit: string): unknown {
  return typeof truth === 'string' && truth.length > 2 ? `${truth.slice(0, -1)}${digit}` : truth
}
