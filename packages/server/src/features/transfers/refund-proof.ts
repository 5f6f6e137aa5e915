import {
  type Address,
  decodeTransferLog,
  type Hex,
  type Network,
  networkByName,
  sameAddress,
  tokenBySymbol,
  zeroAddress,
} from '@purser/protocol'
import type { Chain, Log, Receipt } from '../../chain/port.ts'
import { isManagedAddress, isVirtual } from '../wallets/index.ts'
import { type CoinShare, sumCoinShares } from './coin-share-store.ts'
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
  /** The share that must be taken, for coin that the transaction itself did not send. */
  readonly share?: CoinShare
}

/**
 * The refund of a transfer, if the transaction that the partner names made it: in a block not before the transfer's own, confirmed by a
 * quorum at the payment depth, in the token that was sent, to the address that sent it, and from no wallet of this service or customer of it. Undefined
 * otherwise, also while too few nodes respond: retry later. The partner's statement alone proves nothing. Throws `chain-unavailable`.
 */
export async function proveRefund(
  ctx: Pick<Work, 'db' | 'isCustomerPayment'>,
  chain: Chain,
  transfer: TransferRow,
  hash: Hex | undefined,
): Promise<ProvenRefund | undefined> {
  const { txHash, fromAddress, rawAmount } = transfer
  if (hash === undefined || txHash === null || sameHash(hash, txHash)) return undefined
  const [receipt, sent] = [await chain.receipt(hash), await chain.receipt(txHash)]
  if (receipt === undefined || sent === undefined || receipt.blockNumber < sent.blockNumber) return undefined
  if (!(await isConfirmed(chain, receipt))) return undefined
  const least = leastBack(rawAmount)
  const token = tokenBySymbol(chain.network, transfer.fromToken)
  if (token === undefined) {
    const arrived = await proveCoin(ctx, chain, receipt, { account: fromAddress, rawLeast: least })
    return arrived && { hash, rawAmount: least, ...arrived }
  }
  const logs = await withoutOwn(ctx, receipt, { network: chain.network, account: fromAddress })
  const raw = deliveredTo({ network: chain.network, token: token.address, account: fromAddress }, logs)
  return raw >= least ? { hash, rawAmount: raw } : undefined
}

/** Whether the account received at least this much coin by the transaction or in its block. Undefined if not, or while too few nodes respond. */
async function proveCoin(
  { db }: Pick<Work, 'db'>,
  chain: Chain,
  { transactionHash: hash, blockNumber: block }: Receipt,
  { account, rawLeast, message }: Pick<CoinShare, 'account' | 'rawLeast'> & { readonly message?: string },
): Promise<{ readonly share?: CoinShare } | undefined> {
  const coin = { network: chain.network.name, account, block }
  const rawOthers = await sumCoinShares(db, coin)
  const verdict = await chain.confirmCoinArrival({ account, rawLeast, rawOthers, hash, block })
  if (verdict === 'transaction') return {}
  return verdict === 'block' ? { share: { ...coin, rawLeast, rawOthers, message } } : undefined
}

function sameHash(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase()
}

/** Most failed transfers of one account that one refund transaction may cover. */
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

type ProofCtx = Pick<Ctx, 'db' | 'chains' | 'isCustomerPayment'>

/** A delivery that a partner reports. */
export interface NamedDelivery {
  readonly network: Network
  readonly hash: Hex | undefined
  /** The zero address means the coin. */
  readonly token: Address
  /** The reported amount, or the least that was promised, in the smallest unit. */
  readonly rawLeast: bigint
}

/** Seconds by which a delivery's block may be earlier than that in which the money left, since each chain has its own clock. */
const clocksApartSeconds = 600n

/** Candidates for the delivery of a transfer. */
export interface Deliveries {
  /** The places on the chain, each of which counts for one transfer. */
  readonly messages: readonly string[]
  /** The share that must be taken, for coin that the transaction itself did not send. Several transfers can then have the one message. */
  readonly share?: CoinShare
}

/**
 * The places on the chain that can be this delivery: the transaction's payments of enough of the token to the recipient, from no wallet of this
 * service, the smallest first, so that one transaction can deliver several transfers. A payment from before the money left is not one of them.
 * Undefined if there are none, also while too few nodes respond: retry later. The partner's statement alone proves nothing; without a node on that network only the named transaction is known. A swap
 * pays in the transfer's own transaction and needs no other proof. Throws `chain-unavailable`.
 */
export async function findDeliveries(
  ctx: ProofCtx,
  transfer: Pick<TransferRow, 'route' | 'toAddress' | 'fromNetwork' | 'txHash'>,
  named: NamedDelivery,
): Promise<Deliveries | undefined> {
  const { network, hash } = named
  if (transfer.route === 'partner-swap') return { messages: [] }
  if (hash === undefined) return undefined
  const account = transfer.toAddress
  const message = `${hash}:${account}`.toLowerCase()
  const isServed = ctx.chains.configured.some(({ name }) => name === network.name)
  if (!isServed) return { messages: [message] }
  const chain = ctx.chains.on(network)
  const receipt = await chain.receipt(hash)
  if (receipt === undefined || !(await isConfirmed(chain, receipt))) return undefined
  if (!(await isAfterLeaving(ctx, transfer, await timeOf(chain, receipt)))) return undefined
  if (!sameAddress(named.token, zeroAddress)) return paymentsIn(ctx, receipt, { ...named, account })
  const arrived = await proveCoin(ctx, chain, receipt, { account, rawLeast: named.rawLeast, message })
  return arrived && { messages: [message], ...arrived }
}

async function isAfterLeaving(
  ctx: Pick<ProofCtx, 'chains'>,
  { fromNetwork, txHash }: Pick<TransferRow, 'fromNetwork' | 'txHash'>,
  seconds: bigint,
): Promise<boolean> {
  const network = networkByName(fromNetwork)
  if (network === undefined || txHash === null) return false
  const chain = ctx.chains.on(network)
  const sent = await chain.receipt(txHash)
  return sent !== undefined && seconds + clocksApartSeconds >= (await timeOf(chain, sent))
}

/** The time of a receipt's block, in seconds since 1970, by a majority of the nodes. */
async function timeOf(chain: Chain, { blockNumber }: Receipt): Promise<bigint> {
  const { block } = await chain.stateAt([], { atMost: blockNumber })
  return block.timestampSeconds
}

async function paymentsIn(
  ctx: Pick<ProofCtx, 'db' | 'isCustomerPayment'>,
  receipt: Receipt,
  { network, token, account, rawLeast }: NamedDelivery & { readonly account: Address },
): Promise<Deliveries | undefined> {
  const { transactionHash, logs } = receipt
  const foreign = new Set(await withoutOwn(ctx, receipt, { network, account }))
  const payments = logs.flatMap((log, index) => {
    const moved = foreign.has(log) && sameAddress(log.address, token) ? decodeTransferLog(log) : undefined
    const isEnough =
      moved !== undefined && sameAddress(moved.to, account) && moved.value > 0n && moved.value >= rawLeast
    return isEnough && !sameAddress(moved.from, account) ? [{ index, value: moved.value }] : []
  })
  if (payments.length === 0) return undefined
  const smallestFirst = payments.toSorted((one, other) =>
    one.value < other.value ? -1 : Number(one.value > other.value),
  )
  return { messages: smallestFirst.map(({ index }) => `${transactionHash.toLowerCase()}:${index}`) }
}

/** Whether the receipt is of a successful transaction, and a quorum confirms it at the payment depth. */
async function isConfirmed(chain: Chain, receipt: Receipt): Promise<boolean> {
  if (receipt.status !== 'success') return false
  const [verdict] = await chain.confirmReceipts([receipt])
  return verdict === 'yes'
}

/**
 * Excludes what is not a payment of a partner: all logs of a customer's payment, and those from other managed wallets to the account, which are
 * sweeps and transfers of this service.
 */
async function withoutOwn(
  { db, isCustomerPayment }: Pick<Ctx, 'db' | 'isCustomerPayment'>,
  receipt: Receipt,
  { network, account }: { readonly network: Network; readonly account: Address },
): Promise<readonly Log[]> {
  if (await isCustomerPayment(db, network, receipt)) return []
  const kept: Log[] = []
  const { logs } = receipt
  for (const log of logs) {
    const moved = decodeTransferLog(log)
    const arrives = moved !== undefined && sameAddress(moved.to, account) && !sameAddress(moved.from, account)
    if (!arrives || !(await isManagedAddress(db, moved.from))) kept.push(log)
  }
  return kept
}

/**
 * Amount of a token that these logs brought to an account, less what it sent on. A virtual address of Tempo (TIP-1022) forwards everything
 * immediately to its account: that counts as received.
 */
export function deliveredTo(
  { network, token, account }: { readonly network: Network; readonly token: Address; readonly account: Address },
  logs: readonly Log[],
): bigint {
  const goesOn = network.nativeCoin === null && isVirtual(account.toLowerCase())
  return logs
    .map((log) => (sameAddress(log.address, token) ? decodeTransferLog(log) : undefined))
    .filter((moved) => moved !== undefined)
    .reduce((sum, { from, to, value }) => {
      const came = sameAddress(to, account) ? value : 0n
      return sum + came - (sameAddress(from, account) && !goesOn ? value : 0n)
    }, 0n)
}
