import { type Address, type Chain, checksumAddress, isChain, type Network, tokenByAddress } from '@purser/protocol'
import type { TokenTransfer } from '../../../chain/block-port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { WatchRow } from './watch-store.ts'

export const transactionKinds = ['transfer', 'internal', 'unsupported', 'fee', 'forward', 'held'] as const
export type TransactionKind = (typeof transactionKinds)[number]

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
  /** Of whole transactions: the other transfers of one say what a transfer means. */
  readonly transfers: readonly TokenTransfer[]
  readonly watches: readonly WatchRow[]
  /** Unix seconds of each block. */
  readonly timeOf: (blockNumber: bigint) => bigint
  /** Whether a transfer counts that was there long before the address was watched: only for what somebody asked for by hand. */
  readonly countsEarlier: boolean
}

/** A block's time may be behind ours by what its producer's clock is wrong; money is then not to be missed. */
const clockFaultMsMax = 900_000

/** Tempo's fee manager, and the guard that holds what a recipient's policy refuses (TIP-1028). */
export const feeManager = '0xfeec000000000000000000000000000000000000'
export const policyGuard = '0xb10c000000000000000000000000000000000000'
/** A virtual address: 4 bytes that name its master, these 10, and 6 of its own (TIP-1022). */
const virtualPattern = /^0x[0-9a-f]{8}(?:fd){10}[0-9a-f]{12}$/

/** Whether an address, in lower case, is one of Tempo's that only forwards to its master. */
export function isVirtual(address: string): boolean {
  return virtualPattern.test(address)
}

/**
 * What the transfers mean for each wallet that watches one of their accounts. Nothing is booked for an amount of zero, which anybody can have
 * logged in anybody's name, nor for a token that the network's registry does not know.
 */
export function bookingsOf(ledger: Ledger): Booking[] {
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
      )
    const sides = { senders: here(transfer.from), receivers: here(transfer.to) }
    const origin = originOf(ledger, transfer)
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

function isWatching(watch: WatchRow, place: Place, { network, countsEarlier }: Ledger): boolean {
  if (isOver(watch, place, network)) return false
  return countsEarlier || place.at.getTime() + clockFaultMsMax >= watch.since.getTime()
}

interface Place {
  readonly blockNumber: bigint
  readonly at: Date
}

/**
 * Whether a block came after the wallet was deleted: above the head of that moment. Where that head is not known the block's time decides, which
 * is in whole seconds and begins the block: a block that may have come later counts as later.
 */
function isOver({ until, untilBlock, network: home }: WatchRow, { blockNumber, at }: Place, network: Network): boolean {
  if (until === null) return false
  if (untilBlock !== null && home === network.name) return blockNumber > untilBlock
  return until.getTime() < at.getTime() + Math.max(1_000, network.blockTimeMs)
}

/** A tenant whose wallets at the address include one that was made for this network means that one. */
function nearest(watches: readonly WatchRow[], { network }: Ledger): WatchRow[] {
  const atHome = new Set(
    watches.filter((watch) => watch.network === network.name).map(({ organisationId }) => organisationId),
  )
  const seen = new Set<string>()
  return watches.filter((watch) => {
    if (atHome.has(watch.organisationId) && watch.network !== network.name) return false
    // A wallet of several networks has a watch for each.
    const isFirst = !seen.has(watch.walletId)
    seen.add(watch.walletId)
    return isFirst
  })
}

/** Who sent it: behind a virtual address, the sender of the leg that came to it in the same transaction. */
function originOf({ network, transfers }: Ledger, transfer: TokenTransfer): Address {
  if (!isTempo(network) || !isVirtual(transfer.from)) return transfer.from
  const legs = transfers.filter(
    (leg) =>
      leg.txHash === transfer.txHash &&
      leg.blockHash === transfer.blockHash &&
      leg.token === transfer.token &&
      leg.to === transfer.from &&
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
    if (transfer.to === feeManager || transfer.from === feeManager) return 'fee'
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

function isTempo({ name }: Network): boolean {
  return name === 'tempo' || name === 'tempo-moderato'
}

/** The name of the public API for a network: its own, or the mainnet's by which the test environment reaches it. */
export function chainNameOf(network: Network): Chain {
  const name = network.name.replace(/-(sepolia|amoy)$/, '')
  const found = [network.name, name].find(isChain)
  if (found === undefined) throw new Error(`no chain name means ${network.name}`)
  return found
}
