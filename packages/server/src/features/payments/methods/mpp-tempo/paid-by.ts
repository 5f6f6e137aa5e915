import { type Address, decodeTransferWithMemoLog, type Hex, sameAddress } from '@purser/protocol'
import { fail as failChain } from '../../../../chain/errors.ts'
import type { Chain, Receipt, ShownReceipt } from '../../../../chain/port.ts'
import { type PollRead, pollUntil } from '../../../../platform/work/poll-until.ts'
import { fail, refusedMpp } from '../../errors.ts'
import { transferClaim } from '../../new-payment.ts'
import type { Ctx } from '../../ports.ts'
import { listTakenClaims } from '../../store.ts'
import type { MppPurchase } from '../method.ts'
import { type Owed, whyNotTransfer } from './transaction.ts'

/** A purchase on Tempo, with the payment that it requires. */
export interface TempoPurchase extends MppPurchase {
  readonly owed: Owed
}

/** Maximum milliseconds of waiting for a receipt: a node may be this far behind the payer's node and still be used. */
const waitMsMax = 5_000
/** Milliseconds until the receipt is read again, and the factor by which they grow: an invented hash must not cost many reads. */
const pollMsFirst = 200
const pollGrowth = 2
/** Most transfers of one transaction that are credited beside the one that buys. */
const furtherMax = 50

/** Returns the final transaction of a hash and its transfers that pay for the challenge and have bought nothing yet, at least one. */
export async function paidBy(
  ctx: Pick<Ctx, 'chains' | 'db' | 'log' | 'settleWaitMs'>,
  purchase: TempoPurchase,
  hash: Hex,
) {
  const receipt = await finalReceipt(ctx, purchase, hash)
  if (receipt === undefined)
    throw refusedMpp('verification-failed', 'no such transaction is on chain yet; show the hash again in a moment')
  if (receipt.status === 'reverted') throw refusedMpp('verification-failed', 'the transaction reverted')
  return { receipt, transfers: await paidIn(ctx, purchase, receipt) }
}

/**
 * Returns the receipt that a majority confirms, or undefined if a majority has none. One node's answer is not enough: the payer
 * may have invented the hash and the node the transfer, and a node may hide one. If no majority decides in time it throws
 * `chain-unavailable`: a refusal would make the payer of a real transfer pay again.
 */
async function finalReceipt(
  ctx: Pick<Ctx, 'chains' | 'settleWaitMs'>,
  purchase: TempoPurchase,
  hash: Hex,
): Promise<Receipt | undefined> {
  const receipt = await pollUntil(
    { waitMs: Math.min(waitMsMax, ctx.settleWaitMs), pollMs: pollMsFirst, growth: pollGrowth, lastRead: 'always' },
    (at) => readReceipt(ctx, purchase, hash, at),
    (read) => read !== undefined,
  )
  if (receipt === undefined) throw failChain('chain-unavailable', {}, new Error('too few nodes agree about a receipt'))
  return receipt === 'none' ? undefined : receipt
}

/** Returns the receipt that a majority confirms, `none` if this is the last read and a majority has none, and undefined while no majority decides. */
async function readReceipt(
  ctx: Pick<Ctx, 'chains'>,
  purchase: TempoPurchase,
  hash: Hex,
  { isFirst, isLast }: PollRead,
): Promise<Receipt | 'none' | undefined> {
  const chain = ctx.chains.on(purchase.network)
  const shown = await chain.shortReceipt(hash)
  // Only the first and the last read ask all nodes, and none for a long receipt.
  if (isLast && shown !== 'unread' && (await chain.areInBlocks([hash]))[0] === 'no') return 'none'
  if (shown === 'unread') return longReceipt(ctx, purchase, hash, { isLast })
  const own = await confirmed(chain, shown)
  if (own !== undefined || !(isFirst || isLast)) return own
  return confirmed(chain, (await chain.findReceipts([hash]))[0]?.receipt)
}

async function confirmed(chain: Pick<Chain, 'confirmReceipts'>, receipt: ShownReceipt): Promise<Receipt | undefined> {
  if (receipt === undefined || receipt === 'unread') return undefined
  return (await chain.confirmReceipts([receipt]))[0] === 'yes' ? receipt : undefined
}

/**
 * Returns a long receipt that a majority confirms. It costs each node megabytes, so it is read only if a majority has a transfer of the transaction that pays for
 * the challenge, and the last read alone reads one from all nodes if that of the first is not confirmed. Refuses the credential if there is no such transfer.
 */
async function longReceipt(
  ctx: Pick<Ctx, 'chains'>,
  purchase: TempoPurchase,
  hash: Hex,
  { isLast }: Pick<PollRead, 'isLast'>,
): Promise<Receipt | undefined> {
  const { network, owed } = purchase
  const chain = ctx.chains.on(network)
  const { token, payer, recipient } = owed
  const logs = await chain.memoTransfers({ hash, token, payer, recipient })
  if (logs === 'undecided') return undefined
  const transfers = transfersIn(purchase, { transactionHash: hash, logs })
  if (!transfers.some(({ refusal }) => refusal === undefined)) throw refusalOfAll(transfers)
  const own = await confirmed(chain, (await chain.lookUp([hash])).receipts[0])
  return own === undefined && isLast ? confirmed(chain, await chain.receipt(hash)) : own
}

/** A transfer that pays for a challenge. */
export interface BoundTransfer {
  readonly from: Address
  readonly amount: bigint
  /** Place of its log in the receipt. */
  readonly position: number
}

/**
 * Returns the transfers of the challenge's token that pay for the challenge and have bought nothing yet. If there is none, it refuses
 * with the fault of the closest transfer, or as a duplicate if the transaction has already paid.
 */
async function paidIn(
  { db, log }: Pick<Ctx, 'db' | 'log'>,
  purchase: TempoPurchase,
  receipt: Receipt,
): Promise<readonly BoundTransfer[]> {
  const transfers = transfersIn(purchase, receipt)
  const taken = await listTakenClaims(
    db,
    transfers.map(({ claim }) => claim),
  )
  const paid = transfers.filter(({ claim, refusal }) => refusal === undefined && !taken.has(claim))
  if (paid.length > 1 + furtherMax)
    log.warn(
      { txHash: receipt.transactionHash, transfers: paid.length },
      'a transaction pays a challenge too often; not all of it is credited',
    )
  if (paid.length > 0) return paid.slice(0, 1 + furtherMax)
  if (taken.size > 0) throw fail('duplicate-payment')
  throw refusalOfAll(transfers)
}

/** Returns the transfers with a memo of the challenge's token and payer, each with its fault if it does not pay for the challenge. */
function transfersIn(
  { network, owed }: TempoPurchase,
  { transactionHash, logs }: Pick<Receipt, 'transactionHash' | 'logs'>,
) {
  return logs.flatMap((log, position) => {
    const made = sameAddress(log.address, owed.token) ? decodeTransferWithMemoLog(log) : undefined
    if (made === undefined || (owed.payer !== undefined && !sameAddress(made.from, owed.payer))) return []
    const claim = transferClaim(network, transactionHash, position)
    return [{ ...made, position, claim, refusal: whyNotTransfer(made, owed) }]
  })
}

/** Returns the refusal of transfers of which none pays for the challenge: the fault of the first. */
function refusalOfAll([first]: ReturnType<typeof transfersIn>): Error {
  const message = "the transaction makes no transfer of the challenge's token with a memo"
  const refusal = first?.refusal ?? { problem: 'verification-failed', message }
  return refusedMpp(refusal.problem, refusal.message)
}
