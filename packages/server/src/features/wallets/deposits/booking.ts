import {
  type Address,
  type Chain,
  chainNameOf,
  checksumAddress,
  isTempo,
  type Network,
  tempoFeeManager,
  tokenByAddress,
} from '@purser/protocol'
import type { TokenTransfer } from '../../../chain/blocks/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import { policyGuard } from '../../chains/index.ts'
import type { WatchRow } from './watch-store.ts'

export const transactionKinds = ['transfer', 'internal', 'unsupported', 'fee', 'forward', 'held'] as const
type TransactionKind = (typeof transactionKinds)[number]

/** One wallet's side of a transfer, before it is stored. Addresses are EIP-55 checksummed, hashes in lower case. */
export interface Booking {
  readonly tenant: Tenant
  readonly walletId: string
  readonly chain: Chain
  readonly direction: 'in' | 'out'
  readonly kind: TransactionKind
  readonly token: { readonly address: Address; readonly symbol: string; readonly decimals: number }
  readonly rawAmount: bigint
  readonly from: Address
  readonly to: Address
  readonly txHash: string
  readonly logIndex: number
  readonly blockNumber: bigint
  readonly blockHash: string
  readonly blockTime: Date
}

export interface Ledger {
  readonly network: Network
  /** Transfers of whole transactions, since the meaning of one depends on the others. */
  readonly transfers: readonly TokenTransfer[]
  readonly watches: readonly WatchRow[]
  /** Unix seconds of each block. */
  readonly timeOf: (blockNumber: bigint) => bigint
  /** Whether transfers from long before the address was watched count: only in a manual rescan. */
  readonly countsEarlier: boolean
  /** Wallets that have rows of these transactions: before a newer wallet at their address, a movement is theirs. */
  readonly bookedWallets?: ReadonlySet<string>
}

/** A block's time may be behind ours because of its producer's clock; its transfers must still count. */
export const clockFaultMsMax = 900_000

/** A virtual address: 4 bytes that name its master, these 10, and 6 of its own (TIP-1022). */
const virtualPattern = /^0x[0-9a-f]{8}(?:fd){10}[0-9a-f]{12}$/

/** Whether an address, in lower case, is a virtual address of Tempo, which forwards to its master. */
export function isVirtual(address: string): boolean {
  return virtualPattern.test(address)
}

/**
 * The bookings of transfers for each wallet that watches one of their accounts. Nothing is booked for an amount of zero, which anyone can
 * log in anyone's name, nor for a token that the network's registry does not have.
 */
export function bookingsOf(ledger: Ledger): Booking[] {
  return [...bookingsByOrganisation(ledger)].flat()
}

/** As `bookingsOf`, for one organisation after the other, so that only the bookings of one are in memory. */
export function* bookingsByOrganisation(ledger: Ledger): Generator<Booking[]> {
  const watchesAt = Map.groupBy(ledger.watches, ({ address }) => address)
  const watchesOf = Map.groupBy(ledger.watches, ({ organisationId }) => organisationId)
  const transfersOf = new Map<WatchRow['organisationId'], TokenTransfer[]>()
  for (const transfer of ledger.transfers)
    for (const account of [transfer.from, transfer.to])
      for (const { organisationId } of watchesAt.get(account) ?? []) {
        const transfers = transfersOf.get(organisationId) ?? []
        if (transfers.at(-1) !== transfer) transfers.push(transfer)
        transfersOf.set(organisationId, transfers)
      }
  const legsTo = Map.groupBy(isTempo(ledger.network) ? ledger.transfers : [], legKey)
  for (const [organisationId, transfers] of transfersOf)
    yield bookingsOfOne({ ...ledger, transfers, watches: watchesOf.get(organisationId) ?? [] }, legsTo)
}

/** Transfers by their transaction and recipient. */
type Legs = ReadonlyMap<string, readonly TokenTransfer[]>

function legKey({ txHash, to }: Pick<TokenTransfer, 'txHash' | 'to'>): string {
  return `${txHash} ${to}`
}

function bookingsOfOne(ledger: Ledger, legsTo: Legs): Booking[] {
  const watchesAt = Map.groupBy(ledger.watches, ({ address }) => address)
  return ledger.transfers.flatMap((transfer) => {
    const token = tokenByAddress(ledger.network, transfer.token)
    if (transfer.rawAmount === 0n || token === undefined) return []
    const at = instantOf(Number(ledger.timeOf(transfer.blockNumber)) * 1_000)
    const here = (account: Address): WatchRow[] =>
      nearest(
        (watchesAt.get(account) ?? []).filter((watch) =>
          isWatching(watch, { blockNumber: transfer.blockNumber, at }, ledger),
        ),
        ledger,
        token.symbol,
      )
    const sides = { senders: here(transfer.from), receivers: here(transfer.to) }
    const origin = originOf(legsTo, ledger, transfer)
    const book = (watch: WatchRow, direction: 'in' | 'out'): Booking => ({
      tenant: { organisationId: watch.organisationId, environment: watch.environment },
      walletId: watch.walletId,
      chain: watch.network === ledger.network.name ? watch.chain : chainNameOf(ledger.network),
      direction,
      kind: kindOf(ledger, { transfer, direction, watch, sides, origin, symbol: token.symbol, here }),
      token,
      rawAmount: transfer.rawAmount,
      from: checksumAddress(direction === 'in' ? origin : transfer.from),
      to: checksumAddress(transfer.to),
      txHash: transfer.txHash,
      logIndex: transfer.logIndex,
      blockNumber: transfer.blockNumber,
      blockHash: transfer.blockHash,
      blockTime: at,
    })
    return [...sides.receivers.map((watch) => book(watch, 'in')), ...sides.senders.map((watch) => book(watch, 'out'))]
  })
}

function isWatching(watch: WatchRow, place: BlockPosition, { network, countsEarlier }: Ledger): boolean {
  if (isOver(watch, place, network)) return false
  return countsEarlier || place.at.getTime() + clockFaultMsMax >= watch.since.getTime()
}

interface BlockPosition {
  readonly blockNumber: bigint
  readonly at: Date
}

/** Milliseconds from a block's time to that of the next block: at least a second, because block times are whole seconds. */
export function blockMsOf({ blockTimeMs }: Network): number {
  return Math.max(1_000, blockTimeMs)
}

/**
 * Whether a block came after the wallet was deleted. At the deletion a majority of the nodes named the newest block of the wallet's network.
 * Blocks up to that head came before it. A block above it came after, if its time is later than the deletion; if the
 * head was the newest block then, also if its time is only up to one block time earlier. Any other block counts as
 * before the deletion, also if the node was behind or none responded: reporting a payment that came one second late is
 * better than losing one.
 */
function isOver(watch: WatchRow, { blockNumber, at }: BlockPosition, network: Network): boolean {
  const { until, untilBlock, isUntilNewest } = watch
  if (until === null) return false
  const isHome = watch.network === network.name
  if (untilBlock !== null && isHome && blockNumber <= untilBlock) return false
  return until.getTime() < at.getTime() + (isHome && isUntilNewest ? blockMsOf(network) : 0)
}

/**
 * Prefers the tenant's wallets at the address that were created for this network, if there are any. Managed wallets always count: the service
 * can move their money on every network, and screening holds only what their own ledger has. Of the customer's wallets that an organisation registered
 * at the address for one network, one after the other, one counts, so that a movement is booked once however often the address was registered.
 */
function nearest(watches: readonly WatchRow[], ledger: Ledger, symbol: string): WatchRow[] {
  const { network } = ledger
  const here = watches.filter((watch) => watch.network === network.name)
  const walletsHere = new Set(here.map(({ walletId }) => walletId))
  const organisationsHere = new Set(here.map(({ organisationId }) => organisationId))
  const counting = watches.filter(
    (watch) =>
      watch.network === network.name ||
      (!walletsHere.has(watch.walletId) && (isManaged(watch) || !organisationsHere.has(watch.organisationId))),
  )
  const oneOfEach = new Map<string, WatchRow>()
  for (const watch of counting) {
    const key = isManaged(watch) ? watch.walletId : `${watch.organisationId} ${watch.network}`
    const other = oneOfEach.get(key)
    if (other === undefined || (!isManaged(watch) && isPreferred(watch, other, ledger, symbol)))
      oneOfEach.set(key, watch)
  }
  // A wallet of several networks has a watch for each.
  const seen = new Set<string>()
  return [...oneOfEach.values()].filter(({ walletId }) => !seen.has(walletId) && seen.add(walletId))
}

/**
 * Whether a movement is booked for the first of two wallets that an organisation registered for one network: for the one that accepts the token, because
 * only that one reports it; then for the one that has rows of the transaction; then for the newer one.
 */
function isPreferred(watch: WatchRow, other: WatchRow, { bookedWallets }: Ledger, symbol: string): boolean {
  const [accepts, otherAccepts] = [watch.tokens.includes(symbol), other.tokens.includes(symbol)]
  if (accepts !== otherAccepts) return accepts
  const [isBooked, isOtherBooked] = [bookedWallets?.has(watch.walletId), bookedWallets?.has(other.walletId)]
  if (isBooked !== isOtherBooked) return isBooked === true
  if (watch.since.getTime() !== other.since.getTime()) return watch.since > other.since
  return watch.until === null || (other.until !== null && watch.until > other.until)
}

/** The sender of a transfer; behind a virtual address, the sender of the transfer to it in the same transaction. */
function originOf(legsTo: Legs, { network }: Ledger, transfer: TokenTransfer): Address {
  if (!isTempo(network) || !isVirtual(transfer.from)) return transfer.from
  const legs = (legsTo.get(legKey({ txHash: transfer.txHash, to: transfer.from })) ?? []).filter(
    (leg) =>
      leg.blockHash === transfer.blockHash &&
      leg.token === transfer.token &&
      leg.rawAmount === transfer.rawAmount &&
      leg.logIndex < transfer.logIndex,
  )
  return legs.at(-1)?.from ?? transfer.from
}

interface Side {
  readonly transfer: TokenTransfer
  readonly direction: 'in' | 'out'
  readonly watch: WatchRow
  readonly sides: { readonly senders: readonly WatchRow[]; readonly receivers: readonly WatchRow[] }
  readonly origin: Address
  readonly symbol: string
  readonly here: (account: Address) => readonly WatchRow[]
}

function kindOf(
  { network }: Ledger,
  { transfer, direction, watch, sides, origin, symbol, here }: Side,
): TransactionKind {
  if (isTempo(network)) {
    if (transfer.to === tempoFeeManager || transfer.from === tempoFeeManager) return 'fee'
    if (transfer.to === policyGuard) return 'held'
    if (isVirtual(transfer.from)) {
      const isWatched = here(transfer.from).some(({ organisationId }) => organisationId === watch.organisationId)
      if (direction === 'out' || isWatched) return 'forward'
    }
  }
  if (origin === transfer.to) return 'internal'
  const others = direction === 'in' ? sides.senders : sides.receivers
  const isOwn = others.some((other) => other.organisationId === watch.organisationId && isManaged(other))
  if (isManaged(watch) && isOwn) return 'internal'
  return watch.network === network.name && watch.tokens.includes(symbol) ? 'transfer' : 'unsupported'
}

function isManaged({ walletId }: WatchRow): boolean {
  return walletId.startsWith('mwt_') || walletId.startsWith('cad_')
}
