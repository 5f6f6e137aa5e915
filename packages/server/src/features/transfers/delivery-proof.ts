import {
  type Address,
  decodeTransferLog,
  type Hex,
  type Network,
  networkByName,
  sameAddress,
  zeroAddress,
} from '@purser/protocol'
import type { Chain, Receipt } from '../../chain/port.ts'
import { findReceipt, isConfirmed, withoutOwn } from './named-receipts.ts'
import type { Ctx } from './ports.ts'
import type { TransferRow } from './store.ts'

type Work = Pick<Ctx, 'db' | 'chains'>

/** A delivery that a partner reports. */
export interface NamedDelivery {
  readonly network: Network
  readonly hash: Hex | undefined
  /** The zero address means the coin. */
  readonly token: Address
  /** The reported amount, or the least that was promised, in the smallest unit. */
  readonly rawLeast: bigint
}

/** How much earlier than the money left a delivery's block may be, since each chain has its own clock. */
const clocksApartSeconds = 600n

/**
 * The places on the chain that can be this delivery: the transaction's payments of enough of the token to the recipient, from no wallet of this
 * service, the smallest first, so that one transaction can deliver several transfers. A payment from before the money left is not one of them.
 * Undefined if there are none, also while too few nodes respond: retry later. The partner's statement alone proves nothing; without a node on that network only the named transaction is known. A swap
 * pays in the transfer's own transaction and needs no other proof. Throws `chain-unavailable`.
 */
export async function findDeliveries(
  ctx: Work,
  transfer: Pick<TransferRow, 'route' | 'toAddress' | 'fromNetwork' | 'txHash'>,
  named: NamedDelivery,
): Promise<readonly string[] | undefined> {
  const { network, hash } = named
  if (transfer.route === 'partner-swap') return []
  if (hash === undefined) return undefined
  const place = hash.toLowerCase()
  const account = transfer.toAddress
  const isServed = ctx.chains.configured.some(({ name }) => name === network.name)
  if (!isServed) return [`${place}:${account.toLowerCase()}`]
  const chain = ctx.chains.on(network)
  const receipt = await findReceipt(chain, hash)
  if (receipt === undefined || !(await isConfirmed(chain, receipt))) return undefined
  if (!(await isAfterLeaving(ctx, transfer, await timeOf(chain, receipt)))) return undefined
  if (!sameAddress(named.token, zeroAddress)) return paymentsIn(ctx, receipt, { ...named, account })
  const arrival = { account, rawLeast: named.rawLeast, hash, block: receipt.blockNumber }
  return (await chain.confirmCoinArrival(arrival)) === 'yes' ? [`${place}:${account.toLowerCase()}`] : undefined
}

async function isAfterLeaving(
  ctx: Work,
  { fromNetwork, txHash }: Pick<TransferRow, 'fromNetwork' | 'txHash'>,
  seconds: bigint,
): Promise<boolean> {
  const network = networkByName(fromNetwork)
  if (network === undefined || txHash === null) return false
  const chain = ctx.chains.on(network)
  const sent = await findReceipt(chain, txHash)
  return sent !== undefined && seconds + clocksApartSeconds >= (await timeOf(chain, sent))
}

/** The time of a receipt's block, in seconds since 1970, by a majority of the nodes. */
async function timeOf(chain: Chain, { blockNumber }: Receipt): Promise<bigint> {
  const { block } = await chain.stateAt([], { atMost: blockNumber })
  return block.timestampSeconds
}

async function paymentsIn(
  ctx: Work,
  { transactionHash, logs }: Receipt,
  { token, account, rawLeast }: NamedDelivery & { readonly account: Address },
): Promise<readonly string[] | undefined> {
  const foreign = new Set(await withoutOwn(ctx, logs, account))
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
  return smallestFirst.map(({ index }) => `${transactionHash.toLowerCase()}:${index}`)
}
