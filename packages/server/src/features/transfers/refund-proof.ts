import { type Hex, tokenBySymbol } from '@purser/protocol'
import type { Chain } from '../../chain/port.ts'
import { deliveredTo } from './delivered.ts'
import { findReceipt, isConfirmed, withoutOwn } from './named-receipts.ts'
import type { Ctx } from './ports.ts'
import type { TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Share of the amount, in hundredths of a percent, that a partner may keep of a refund for its gas. */
const keptBpsMax = 200n

/** The least amount of a refund, in the smallest unit of the token that was sent. */
function leastBack(rawAmount: bigint): bigint {
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
  if (!(await isConfirmed(chain, receipt))) return undefined
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

/** Most failed transfers of one account that are considered as refunded together. */
export const refundedTogetherMax = 10

/**
 * Whether a refund of this amount is for a transfer: alone, with transfers that it already refunded, or with some of the others that have failed. The
 * amount is at most what all of these sent, and at least what must come back of each. So the larger refund of another transfer is not taken for it.
 */
export function isRefundOf(
  rawBack: bigint,
  sent: { readonly own: bigint; readonly taken: readonly bigint[]; readonly failing: readonly bigint[] },
): boolean {
  const certain = [sent.own, ...sent.taken]
  const least = certain.reduce((sum, raw) => sum + leastBack(raw), 0n)
  const most = certain.reduce((sum, raw) => sum + raw, 0n)
  return isCovered(rawBack, { least, most }, sent.failing.slice(0, refundedTogetherMax))
}

function isCovered(
  rawBack: bigint,
  { least, most }: { readonly least: bigint; readonly most: bigint },
  failing: readonly bigint[],
): boolean {
  if (rawBack < least) return false
  if (rawBack <= most) return true
  const [next, ...rest] = failing
  if (next === undefined) return false
  const withNext = { least: least + leastBack(next), most: most + next }
  return isCovered(rawBack, withNext, rest) || isCovered(rawBack, { least, most }, rest)
}
