import type { Address } from '@purser/protocol'
import type {
  BlockHeader,
  BlockRange,
  BlockReads,
  ConfirmedReads,
  IsWanted,
  ScannedRange,
  TokenTransfer,
  TransferClaim,
} from '../../../chain/blocks/port.ts'
import { fail } from '../../../chain/errors.ts'
import type { NodeVerdict } from '../../../chain/port.ts'
import { isProblem } from '../../../platform/errors.ts'
import type { ScannedBlock } from './cursor-store.ts'
import { contradicts } from './fork.ts'

/** Number of nodes that read a range, if there are that many, so that a single node cannot hide a transfer. */
const nodesMost = 2

/** Milliseconds in which votes on the transfers of one range begin: each of them may wait a second for a node that answers late. */
const votesMsMost = 10_000

export interface Several {
  readonly reads: BlockReads & ConfirmedReads
  /** The clock of durations; default `performance.now`. */
  readonly nowMs?: () => number
}

/**
 * Reads a range at two nodes, or at the only one. Where their blocks differ from each other or from the remembered ones, all nodes are read, and those
 * remain whose blocks a majority has. Throws `chain-unavailable` if too few remain.
 */
export async function readAtSeveral(
  { reads }: Several,
  range: BlockRange,
  { isWanted, known }: { readonly isWanted: IsWanted; readonly known: readonly ScannedBlock[] },
): Promise<readonly ScannedRange[]> {
  const nodes = reads.eachNode()
  const needed = Math.min(nodesMost, nodes.length)
  const found: ScannedRange[] = []
  for (const node of nodes) {
    const one = await node.transfers(range, isWanted).catch(unavailable)
    if (one !== undefined) found.push(one)
    if (found.length >= needed && disputedIn(found, known).length === 0) return found
  }
  const disputed = disputedIn(found, known)
  const verdicts = await reads.areReplaced(disputed)
  const denied = new Set(disputed.filter((_, index) => verdicts[index] !== 'no').map(keyOf))
  const kept = found.filter(({ headers }) => !headers.some((header) => denied.has(keyOf(header))))
  if (kept.length < needed) throw fail('chain-unavailable', {}, new Error('too few nodes agree on a range of blocks'))
  return kept
}

function unavailable(error: unknown): undefined {
  if (!isProblem(error, 'chain-unavailable')) throw error
}

/** Every header of a height at which headers differ, or that contradicts a remembered block. */
function disputedIn(found: readonly ScannedRange[], known: readonly ScannedBlock[]): BlockHeader[] {
  const each = new Map(found.flatMap(({ headers }) => headers.map((header) => [keyOf(header), header])))
  const byNumber = Map.groupBy(each.values(), ({ number }) => number)
  return [...byNumber.values()].flatMap((some) => (some.length > 1 || contradicts(some, known) ? some : []))
}

function keyOf({ number, hash, timestampSeconds }: BlockHeader): string {
  return `${number} ${hash} ${timestampSeconds}`
}

/** The headers of all readings, which have the same block at each height. */
export function headersOf(readings: readonly ScannedRange[]): BlockHeader[] {
  const byNumber = new Map(readings.flatMap(({ headers }) => headers.map((header) => [header.number, header])))
  return [...byNumber.values()].toSorted((left, right) => (left.number < right.number ? -1 : 1))
}

/** Every transfer that one of the readings has. Of those that exclude each other the ones remain that a majority confirms. */
export function unionOf(several: Several, readings: readonly ScannedRange[]): Promise<readonly TokenTransfer[]> {
  const all = [...new Map(readings.flatMap(({ transfers }) => transfers.map((one) => [identityOf(one), one]))).values()]
  const doubtful = new Set([
    ...shared(all, ({ blockNumber, logIndex }) => `${blockNumber}/${logIndex}`),
    ...shared(all, ({ txHash, logIndex }) => `${txHash}/${logIndex}`),
  ])
  return withoutDenied(several, all, (transfer) => doubtful.has(transfer))
}

function identityOf({ txHash, logIndex, blockHash, token, from, to, rawAmount }: TokenTransfer): string {
  return [txHash, logIndex, blockHash, token, from, to, rawAmount].join(' ')
}

/** The transfers that share a place with another. */
function shared(all: readonly TokenTransfer[], placeOf: (transfer: TokenTransfer) => string): TokenTransfer[] {
  return [...Map.groupBy(all, placeOf).values()].flatMap((some) => (some.length > 1 ? some : []))
}

/** The transfers without those doubtful ones that a majority denies. Throws `chain-unavailable` while it is undecided about one. */
export async function withoutDenied(
  { reads }: Several,
  transfers: readonly TokenTransfer[],
  isDoubtful: (transfer: TokenTransfer) => boolean,
): Promise<readonly TokenTransfer[]> {
  const doubtful = transfers.filter(isDoubtful)
  const verdicts = await reads.confirmTransfers(doubtful.map(claimOf))
  if (verdicts.includes('undecided'))
    throw fail('chain-unavailable', {}, new Error('too few nodes agree on transfers that nodes report differently'))
  const denied = new Set(doubtful.filter((_, index) => verdicts[index] === 'no'))
  return transfers.filter((transfer) => !denied.has(transfer))
}

function claimOf(transfer: TokenTransfer): TransferClaim {
  const isOf = (other: TokenTransfer) =>
    other.logIndex === transfer.logIndex && identityOf(other) === identityOf(transfer)
  return { ...transfer, isOf }
}

/** Most transactions of one vote, each with a receipt. */
const votedMost = 100

/** The readings without invented transfers, and the result of the vote. */
export interface Believed {
  readonly readings: readonly ScannedRange[]
  /** Number of transfers that a majority denies. */
  readonly invented: number
  /** The transfers about which the nodes are undecided, and those on which they did not vote in time. */
  readonly undecided: readonly TokenTransfer[]
}

/**
 * Removes transfers that one node invented. All nodes vote on the wanted transfers, except on those that two readings have. A transfer remains unless a
 * majority has its block without it. Of a single reading only the first such transfers are removed: votes end where one does not confirm each transfer.
 */
export async function withoutInvented(
  { reads, nowMs = () => performance.now() }: Several,
  readings: readonly ScannedRange[],
  isWanted: IsWanted,
): Promise<Believed> {
  const lone = [...shownOnce(readings, isWanted).values()]
  const untilMs = nowMs() + votesMsMost
  const verdicts = new Map<TokenTransfer, NodeVerdict>()
  for (const some of votesOf(lone)) {
    if (nowMs() >= untilMs) break
    const found = await reads.areInvented(some.map(claimOf))
    some.forEach((transfer, index) => {
      verdicts.set(transfer, found[index] ?? 'undecided')
    })
    // The range is then read again at other nodes: the one that was read must not cause any number of votes.
    if (readings.length === 1 && found.some((verdict) => verdict !== 'no')) break
  }
  const invented = new Set(lone.filter((transfer) => verdicts.get(transfer) === 'yes').map(identityOf))
  const isKept = (transfer: TokenTransfer): boolean => !invented.has(identityOf(transfer))
  return {
    readings:
      invented.size === 0 ? readings : readings.map((one) => ({ ...one, transfers: one.transfers.filter(isKept) })),
    invented: invented.size,
    undecided: lone.filter((transfer) => (verdicts.get(transfer) ?? 'undecided') === 'undecided'),
  }
}

/** The transfers in parts for one vote each. Those of one transaction are in the same part. */
function votesOf(transfers: readonly TokenTransfer[]): TokenTransfer[][] {
  const ofEach = [...Map.groupBy(transfers, ({ txHash }) => txHash).values()]
  return Array.from({ length: Math.ceil(ofEach.length / votedMost) }, (_, index) =>
    ofEach.slice(index * votedMost, (index + 1) * votedMost).flat(),
  )
}

/** Throws `chain-unavailable` if a majority has other blocks than those of these transfers: one node invented them. */
export async function refuseReplaced({ reads }: Several, transfers: readonly TokenTransfer[]): Promise<void> {
  const blocks = transfers.map(({ blockNumber: number, blockHash: hash }) => ({ number, hash }))
  const each = new Map(blocks.map((block) => [`${block.number} ${block.hash}`, block]))
  if ((await reads.areReplaced([...each.values()])).includes('yes'))
    throw fail('chain-unavailable', {}, new Error('a majority has other blocks than those of a node’s transfers'))
}

/** The wanted transfers that fewer than two readings have, by what identifies them. */
function shownOnce(readings: readonly ScannedRange[], isWanted: IsWanted): ReadonlyMap<string, TokenTransfer> {
  const counts = new Map<string, number>()
  const lone = new Map<string, TokenTransfer>()
  for (const { transfers } of readings) {
    const own = new Map(
      transfers
        .filter(({ from, to }) => isWanted(topicOf(from), topicOf(to)))
        .map((transfer) => [identityOf(transfer), transfer]),
    )
    for (const [identity, transfer] of own) {
      const count = (counts.get(identity) ?? 0) + 1
      counts.set(identity, count)
      if (count < nodesMost) lone.set(identity, transfer)
      else lone.delete(identity)
    }
  }
  return lone
}

function topicOf(account: Address): string {
  return `0x${'0'.repeat(24)}${account.slice(2)}`
}
