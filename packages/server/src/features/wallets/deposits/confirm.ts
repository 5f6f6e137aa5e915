import { formatAmount, type Network } from '@purser/protocol'
import type { ConfirmedReads, TokenTransfer, TransferClaim } from '../../../chain/blocks/port.ts'
import type { NodeVerdict } from '../../../chain/port.ts'
import type { Deps, Tenant } from '../../../platform/ctx.ts'
import { isDeadlock, isRefusedData, type Tx } from '../../../platform/db/db.ts'
import { publishEvents } from '../../../platform/events.ts'
import type { EventId } from '../../../platform/ids.ts'
import { roundRobin } from '../../../platform/round-robin.ts'
import type { DueCursors } from '../../plans/index.ts'
import { isVirtual } from './booking.ts'
import type { WatcherLease } from './cursor-store.ts'
import { classifyOwnDeposits } from './own-deposits-store.ts'
import {
  findPending,
  listPending,
  listUnaskedIn,
  markUndecided,
  type Pending,
  type PendingList,
  pendingLists,
} from './pending-store.ts'
import { requireCursor, type ScanDeps, withdraw } from './store-scan.ts'
import { lockAsRead, markConfirmed, recordLateDeposits, type TransactionRow } from './transaction-store.ts'

type PublishDeps = Pick<Deps, 'clock' | 'eventsCommitted' | 'random'>
type ConfirmReads = { readonly reads: Pick<ConfirmedReads, 'confirmTransfers'> }
type ConfirmDeps = ScanDeps & PublishDeps & ConfirmReads

const rowsMost = 100
/** Milliseconds in which one turn begins further pages of rows: where receipts are long, a page takes up to 80 seconds. */
const turnMsMax = 10_000
/** Most rows of a range of blocks that nodes vote on again. */
const votedAgainMost = 1_000

/** The list of the next page, and the organisations behind which each list continues. Kept while the network is followed. */
export interface ConfirmTurns {
  next: PendingList
  readonly cursors: Readonly<Record<PendingList, DueCursors>>
}

export function firstTurn(): ConfirmTurns {
  return { next: 'unasked', cursors: { unasked: new Map(), undecided: new Map() } }
}

interface Turn {
  /** The last block that was read. */
  readonly upTo: bigint
  readonly turns: ConfirmTurns
  readonly nowMs: () => number
}

/**
 * Confirms rows of blocks that were read and are final. A majority of the nodes must have each transfer in the block in which it was
 * read. If a majority has the block without the transfer, a node invented it, and the row is withdrawn; any other row waits. Its status and
 * its event commit together, and a row with an event never gets another. Each page has shares of all organisations. Pages of rows about which a vote
 * was undecided come in turn with pages of others, and none of them is voted on twice. Nodes are queried only if rows are pending.
 */
export async function confirmFinal(
  deps: ConfirmDeps & { readonly reads: Pick<ConfirmedReads, 'finalBlock'> },
  lease: WatcherLease,
  network: Network,
  { upTo, turns, nowMs }: Turn,
): Promise<void> {
  const pending = await findPending(deps.db, network.name)
  const { oldest, hasUndecided } = pending
  if (oldest === null && !hasUndecided) return
  const final = await deps.reads.finalBlock()
  if (final === undefined) {
    deps.log.warn({ network: network.name }, 'too few nodes agree on a block at the confirmation depth; deposits wait')
    return
  }
  if (!hasUndecided && oldest !== null && oldest > final) return
  await confirmPages(deps, lease, network, { upTo: final < upTo ? final : upTo, turns, nowMs, pending })
}

async function confirmPages(
  deps: ConfirmDeps,
  lease: WatcherLease,
  network: Network,
  { upTo, turns, nowMs, pending }: Turn & { readonly pending: Pending },
): Promise<void> {
  const untilMs = nowMs() + turnMsMax
  let listsLeft: number = pendingLists.length
  while (listsLeft > 0) {
    const list = turns.next
    turns.next = list === 'unasked' ? 'undecided' : 'unasked'
    const page = { upTo, at: pending.at, most: rowsMost, cursors: turns.cursors[list] }
    const isEmpty = list === 'undecided' && !pending.hasUndecided
    const rows = isEmpty ? [] : await listPending(deps.db, network.name, list, page)
    if (rows.length > 0) await confirmRows(deps, lease, rows)
    listsLeft = rows.length < rowsMost ? listsLeft - 1 : pendingLists.length
    if (nowMs() >= untilMs) return
  }
}

async function confirmRows(deps: ConfirmDeps, lease: WatcherLease, rows: readonly TransactionRow[]): Promise<void> {
  const verdicts = await deps.reads.confirmTransfers(rows.map(claimOf))
  const judged = rows.map((row, index) => ({ row, verdict: verdicts[index] ?? ('undecided' as const) }))
  for (const { row, verdict } of judged)
    if (verdict === 'undecided') {
      const { id, txHash, network } = row
      deps.log.warn({ id, txHash, network }, 'too few nodes confirm a deposit; it stays pending')
    }
  await storeVerdicts(deps, lease, judged)
}

interface Judged {
  readonly row: TransactionRow
  readonly verdict: NodeVerdict
}

/** Stores what a vote decided. A row that the database refuses fails alone, and waits as if the vote had been undecided. */
async function storeVerdicts(deps: ConfirmDeps, lease: WatcherLease, judged: readonly Judged[]): Promise<void> {
  try {
    await deps.db.tx((tx) => writeVerdicts(deps, tx, lease, judged), { readsByKeys: true })
  } catch (error) {
    if (!isRefusedData(error) && !isDeadlock(error)) throw error
    if (judged.length > 1) {
      for (const one of judged) await storeVerdicts(deps, lease, [one])
      return
    }
    const [refused] = judged
    if (refused?.verdict === 'undecided') throw error
    deps.log.error({ err: error, id: refused?.row.id }, 'the confirmation of a deposit could not be stored; retrying')
    await storeVerdicts(
      deps,
      lease,
      judged.map(({ row }) => ({ row, verdict: 'undecided' })),
    )
  }
}

async function writeVerdicts(deps: ConfirmDeps, tx: Tx, lease: WatcherLease, judged: readonly Judged[]): Promise<void> {
  await requireCursor(tx, lease)
  const verdicts = new Map<string, NodeVerdict>(judged.map(({ row, verdict }) => [row.id, verdict]))
  const locked = await lockAsRead(
    tx,
    judged.map(({ row }) => row),
  )
  const having = (verdict: NodeVerdict) => locked.filter(({ id }) => verdicts.get(id) === verdict)
  await withdraw(deps, tx, having('no'))
  const waiting = await confirmLocked(deps, tx, having('yes'))
  await markUndecided(
    tx,
    [...having('undecided'), ...waiting].map(({ id }) => id),
  )
}

/**
 * Withdraws those confirmed rows, contradicted by one node, that a majority does not have any more: the chain reorganized below a final
 * block. Returns how many.
 */
export async function withdrawDenied(
  deps: ScanDeps & ConfirmReads,
  lease: WatcherLease,
  rows: readonly TransactionRow[],
): Promise<number> {
  const verdicts = await deps.reads.confirmTransfers(rows.map(claimOf))
  return withdrawRows(
    deps,
    lease,
    rows.filter((_, index) => verdicts[index] === 'no'),
  )
}

/**
 * Withdraws the pending rows of a range of blocks that a majority denies, at any depth: where it was undecided when they were read. Votes on rows of
 * each organisation in turn, on 1,000 at most, and begins no further vote after ten seconds: the rows that are left are decided when they are final.
 * Returns how many.
 */
export async function withdrawInvented(
  deps: ScanDeps & { readonly reads: Pick<ConfirmedReads, 'areInvented'> },
  lease: WatcherLease,
  network: Network,
  {
    from,
    to,
    cursors,
    nowMs,
  }: { readonly from: bigint; readonly to: bigint; readonly cursors: DueCursors; readonly nowMs: () => number },
): Promise<number> {
  const untilMs = nowMs() + turnMsMax
  const listed = await listUnaskedIn(deps.db, network.name, { from, to, most: votedAgainMost, cursors })
  const inTurns = roundRobin([...Map.groupBy(listed, ({ shareOwner }) => shareOwner).values()])
  let withdrawn = 0
  for (let place = 0; place < inTurns.length; place += rowsMost) {
    if (place > 0 && nowMs() >= untilMs) break
    const rows = inTurns.slice(place, place + rowsMost)
    const verdicts = await deps.reads.areInvented(rows.map(claimOf))
    withdrawn += await withdrawRows(
      deps,
      lease,
      rows.filter((_, index) => verdicts[index] === 'yes'),
    )
  }
  return withdrawn
}

/** Withdraws those of these rows that have not changed since they were read. Returns how many. */
async function withdrawRows(deps: ScanDeps, lease: WatcherLease, rows: readonly TransactionRow[]): Promise<number> {
  if (rows.length === 0) return 0
  return deps.db.tx(async (tx) => {
    await requireCursor(tx, lease)
    const locked = await lockAsRead(tx, rows)
    await withdraw(deps, tx, locked)
    return locked.length
  })
}

function claimOf(row: TransactionRow): TransferClaim {
  const { token, to, txHash, blockNumber, blockHash } = row
  return { token, to, txHash, blockNumber, blockHash, isOf: (transfer) => isOf(row, transfer) }
}

/** Compares a row with a transfer. Behind a virtual address the row has the original sender. */
function isOf(row: TransactionRow, transfer: TokenTransfer): boolean {
  return (
    transfer.logIndex === row.logIndex &&
    transfer.token === row.token.toLowerCase() &&
    (transfer.from === row.from.toLowerCase() || isVirtual(transfer.from)) &&
    transfer.to === row.to.toLowerCase() &&
    transfer.rawAmount === row.rawAmount
  )
}

/** Confirms rows; one that may be an open sweep waits for the sweep's end. Returns those that wait. */
async function confirmLocked(
  deps: PublishDeps,
  tx: Tx,
  locked: readonly TransactionRow[],
): Promise<readonly TransactionRow[]> {
  if (locked.length === 0) return []
  const now = deps.clock.now()
  const events = new Map<string, EventId>()
  const isNew = ({ direction, eventId }: TransactionRow) => direction === 'in' && eventId === null
  const own = await classifyOwnDeposits(
    tx,
    locked.filter((row) => isNew(row) && row.kind === 'internal'),
  )
  const rows = locked.filter(({ id }) => own.get(id) !== 'undecided')
  const newDeposits = rows.filter((row) => isNew(row) && (row.kind === 'transfer' || own.get(row.id) === 'deposit'))
  for (const [tenant, deposits] of byTenant(newDeposits)) {
    const payloads = deposits.map((row) => depositPayload(row, now))
    const eventIds = await publishEvents({ ...deps, tenant }, tx, 'deposit.success', payloads)
    deposits.forEach((row, index) => {
      const eventId = eventIds[index]
      if (eventId !== undefined) events.set(row.id, eventId)
    })
  }
  await markConfirmed(
    tx,
    rows.map(({ id }) => ({ id, eventId: events.get(id) })),
    now,
  )
  // Test money is worth nothing.
  const deposits = rows.filter(({ direction, environment }) => direction === 'in' && environment === 'live')
  await recordLateDeposits(
    tx,
    deposits.map(({ id }) => id),
  )
  return locked.filter(({ id }) => own.get(id) === 'undecided')
}

function byTenant(rows: readonly TransactionRow[]): [Tenant, TransactionRow[]][] {
  const groups = Map.groupBy(rows, ({ organisationId, environment }) => `${organisationId}/${environment}`)
  return [...groups.values()].flatMap((group): [Tenant, TransactionRow[]][] => {
    const first = group[0]
    return first === undefined
      ? []
      : [[{ organisationId: first.organisationId, environment: first.environment }, group]]
  })
}

function depositPayload(row: TransactionRow, confirmedAt: Date) {
  return {
    walletId: row.walletId,
    txHash: row.txHash,
    logIndex: row.logIndex,
    amount: formatAmount(row.rawAmount, row.decimals),
    rawAmount: row.rawAmount.toString(),
    tokenSymbol: row.tokenSymbol,
    chain: row.chain,
    from: row.from,
    to: row.to,
    blockNumber: Number(row.blockNumber),
    confirmedAt: confirmedAt.toISOString(),
  }
}
