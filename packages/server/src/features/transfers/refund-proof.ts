import { type Address, decodeTransferLog, type Hex, sameAddress, tokenBySymbol } from '@purser/protocol'
import type { Chain, Log, Receipt } from '../../chain/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { isManagedAddress } from '../wallets/index.ts'
import { deliveredTo } from './delivered.ts'
import type { TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Share of the amount, in hundredths of a percent, that a partner may keep of a refund for its gas. */
const keptBpsMax = 200n

/** The least amount of a refund, in the smallest unit of the token that was sent. */
export function leastBack(rawAmount: bigint): bigint {
  return rawAmount - (rawAmount * keptBpsMax) / 10_000n
}

/** A transaction that returned the sent amount, or nearly all of it, to the sender. */
export interface ProvenRefund {
  readonly hash: Hex
  /** In the smallest unit of the token that was sent. For the coin, which has no log, it is the expected amount. */
  readonly rawAmount: bigint
}

/**
 * The refund of a transfer, if the transaction that the partner names made it: in a block not before the transfer's own, confirmed by a
 * quorum at the payment depth, in the token that was sent, to the address that sent it, and from no wallet of this service. Undefined
 * otherwise, also while too few nodes respond: retry later. The partner's statement alone proves nothing. Throws `chain-unavailable`.
 */
export async function proveRefund(
  ctx: Pick<Work, 'db'>,
  chain: Chain,
  transfer: TransferRow,
  hash: Hex | undefined,
): Promise<ProvenRefund | undefined> {
  const { txHash, fromAddress, rawAmount } = transfer
  if (hash === undefined || txHash === null || sameHash(hash, txHash)) return undefined
  const [receipt, sent] = [await findReceipt(chain, hash), await findReceipt(chain, txHash)]
  if (receipt === undefined || sent === undefined || receipt.blockNumber < sent.blockNumber) return undefined
  if (receipt.status !== 'success') return undefined
  const [verdict] = await chain.confirmReceipts([receipt])
  if (verdict !== 'yes') return undefined
  const least = leastBack(rawAmount)
  const token = tokenBySymbol(chain.network, transfer.fromToken)
  if (token === undefined) {
    const arrival = { account: fromAddress, rawLeast: least, hash, block: receipt.blockNumber }
    return (await chain.confirmCoinArrival(arrival)) === 'yes' ? { hash, rawAmount: least } : undefined
  }
  const logs = await withoutOwn(ctx, receipt.logs, fromAddress)
  const raw = deliveredTo({ network: chain.network, token: token.address, account: fromAddress }, logs)
  return raw >= least ? { hash, rawAmount: raw } : undefined
}

function sameHash(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

async function findReceipt(chain: Chain, hash: Hex): Promise<Receipt | undefined> {
  const own = await chain.receipt(hash)
  if (own !== undefined) return own
  const [elsewhere] = await chain.findReceipts([hash])
  return elsewhere?.receipt
}

/** Excludes logs from other managed wallets: a sweep or a transfer of this service is not a refund. */
async function withoutOwn({ db }: Pick<Work, 'db'>, logs: readonly Log[], account: Address): Promise<readonly Log[]> {
  const kept: Log[] = []
  for (const log of logs) {
    const moved = decodeTransferLog(log)
    const arrives = moved !== undefined && sameAddress(moved.to, account) && !sameAddress(moved.from, account)
    if (!arrives || !(await isManagedAddress(db, moved.from))) kept.push(log)
  }
  return kept
}
