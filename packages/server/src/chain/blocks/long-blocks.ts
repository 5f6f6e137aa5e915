import { type Hex, isHex } from '@purser/protocol'
import { invalidResponse } from '../rpc/read.ts'
import { isRecord, type Rpc } from '../rpc/rpc.ts'
import { lower, presentBlock, readReceipt, withoutDuplicates } from './parse.ts'
import type { BlockRange, IsWanted, ScannedRange, TokenTransfer } from './port.ts'
import { scanAccounts } from './scan-accounts.ts'

/** Refusals of a block's logs after which its receipts are read instead. */
const refusalsMost = 3
const blocksMost = 1_000
const receiptsPerRequest = 100

/** Refusals that have nothing to do with the number of logs. */
const ofRate = /rate|per second|too many requests|capacity|credit|quota|unauthori[sz]ed|forbidden/i

/** The blocks whose logs nodes refuse, since one block can have more logs than a node returns. */
export interface LongBlocks {
  /** Records that a node refused the logs of this block alone. */
  add(block: bigint, refusal: string): void
  /** Whether the block's logs were refused so often that its receipts are read. */
  has(block: bigint): boolean
}

export function createLongBlocks(): LongBlocks {
  const refusals = new Map<bigint, number>()
  return {
    add(block, refusal) {
      if (ofRate.test(refusal)) return
      refusals.set(block, (refusals.get(block) ?? 0) + 1)
      const oldest = refusals.keys().next()
      if (refusals.size > blocksMost && oldest.done !== true) refusals.delete(oldest.value)
    },
    has: (block) => (refusals.get(block) ?? 0) >= refusalsMost,
  }
}

/** Reads the transfers of one block from the receipts of its transactions, and those of the receipts that the node does not deliver by their accounts. */
export async function scanReceipts(rpc: Rpc, range: BlockRange, isWanted: IsWanted): Promise<ScannedRange> {
  const { from: number, hash: wantedHash, tokens } = range
  const value = await rpc.result('eth_getBlockByNumber', [`0x${number.toString(16)}`, false])
  const block = presentBlock(value, number)
  if (wantedHash !== undefined && block.hash !== wantedHash)
    throw invalidResponse('the node has a different block at that height')
  const hashes = transactionsOf(value)
  const requested = new Set(tokens.map((token) => token.toLowerCase()))
  const transfers: TokenTransfer[] = []
  const unread = new Set<string>()
  for (let at = 0; at < hashes.length; at += receiptsPerRequest) {
    const part = hashes.slice(at, at + receiptsPerRequest)
    const responses = await rpc.batch(part.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })))
    for (const [index, hash] of part.entries()) {
      const response = responses[index]
      if (response?.ok !== true) {
        unread.add(hash)
        continue
      }
      const receipt = readReceipt(response.result, hash)
      if (receipt?.blockHash !== block.hash) throw invalidResponse('the node lacks a receipt of a block')
      const own = receipt.transfers.filter(({ token }) => requested.has(token))
      if (own.some(({ from, to }) => isWanted(topicOf(from), topicOf(to)))) transfers.push(...own)
    }
  }
  if (unread.size > 0) transfers.push(...(await scanAccounts(rpc, { ...range, hash: block.hash }, unread)))
  return { headers: [block], transfers: withoutDuplicates(transfers) }
}

function transactionsOf(block: unknown): Hex[] {
  const hashes = isRecord(block) && Array.isArray(block.transactions) ? block.transactions.map(lower) : undefined
  if (hashes?.every((hash) => isHex(hash)) !== true) throw invalidResponse('the node lists no transactions of a block')
  return hashes.filter((hash) => isHex(hash))
}

function topicOf(account: string): string {
  return `0x${'0'.repeat(24)}${account.slice(2)}`
}
