import type {
  BlockHeader,
  BlockRange,
  BlockReads,
  ConfirmedReads,
  IsWanted,
  ScannedRange,
  TokenTransfer,
} from '../../../chain/blocks/port.ts'
import { fail } from '../../../chain/errors.ts'
import { isProblem } from '../../../platform/errors.ts'
import type { ScannedBlock } from './cursor-store.ts'
import { contradicts } from './fork.ts'

/** Number of nodes that read a range, if there are that many, so that a single node cannot hide a transfer. */
const nodesMost = 2

export interface Several {
  readonly reads: BlockReads & ConfirmedReads
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
  const verdicts = await reads.confirmTransfers(
    doubtful.map((claim) => ({ ...claim, isOf: (transfer) => identityOf(transfer) === identityOf(claim) })),
  )
  if (verdicts.includes('undecided'))
    throw fail('chain-unavailable', {}, new Error('too few nodes agree on transfers that nodes report differently'))
  const denied = new Set(doubtful.filter((_, index) => verdicts[index] === 'no'))
  return transfers.filter((transfer) => !denied.has(transfer))
}
