import { formatAmount, type Network } from '@purser/protocol'
import type { ConfirmedReads, TokenTransfer, TransferClaim } from '../../../chain/blocks/port.ts'
import type { Deps, Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { publishEvents } from '../../../platform/events.ts'
import type { EventId } from '../../../platform/ids.ts'
import { isVirtual } from './booking.ts'
import type { WatcherLease } from './cursor-store.ts'
import { classifyOwnDeposits } from './own-deposits-store.ts'
import { requireCursor, type ScanDeps, withdraw } from './store-scan.ts'
import { listPending, lockAsRead, markConfirmed, recordLateDeposits, type TransactionRow } from './transaction-store.ts'

type PublishDeps = Pick<Deps, 'clock' | 'eventsCommitted' | 'random'>
type ConfirmReads = { readonly reads: Pick<ConfirmedReads, 'confirmTransfers'> }
type ConfirmDeps = ScanDeps & PublishDeps & ConfirmReads

const rowsMost = 100
/** Milliseconds in which one turn begins further pages of rows: where receipts are long, a page takes up to 80 seconds. */
const turnMsMax = 10_000

/** The row behind which a turn begins. */
export type ConfirmedTo = Pick<TransactionRow, 'blockNumber' | 'id'>
const beginning: ConfirmedTo = { blockNumber: -1n, id: 'wtx_' }

/**
 * Confirms final rows: those in blocks up to the given one. A majority of the nodes must have each transfer in the block in which it was
 * read. If a majority has the block without the transfer, a node invented it, and the row is withdrawn; any other row waits. Its status and
 * its event commit together, and a row with an event never gets another. Returns where the next turn continues, if this one ended before the last row.
 */
export async function confirmUpTo(
  deps: ConfirmDeps,
  lease: WatcherLease,
  network: Network,
  {
    upTo,
    from = beginning,
    nowMs,
  }: { readonly upTo: bigint; readonly from?: ConfirmedTo | undefined; readonly nowMs: () => number },
): Promise<ConfirmedTo | undefined> {
  const untilMs = nowMs() + turnMsMax
  let after = from
  for (;;) {
    const rows = await listPending(deps.db, network.name, { upTo, after, limit: rowsMost })
    if (rows.length > 0) await confirmRows(deps, lease, rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsMost) return undefined
    if (nowMs() >= untilMs) return last
    after = last
  }
}

async function confirmRows(deps: ConfirmDeps, lease: WatcherLease, rows: readonly TransactionRow[]): Promise<void> {
  const verdicts = await deps.reads.confirmTransfers(rows.map(claimOf))
  const {
    yes: proven = [],
    no: invented = [],
    undecided = [],
  } = Object.groupBy(rows, (_, index) => verdicts[index] ?? 'undecided')
  for (const { id, txHash, network } of undecided)
    deps.log.warn({ id, txHash, network }, 'too few nodes confirm a deposit; it stays pending')
  if (proven.length + invented.length === 0) return
  await deps.db.tx(
    async (tx) => {
      await requireCursor(tx, lease)
      await withdraw(deps, tx, await lockAsRead(tx, invented))
      await confirmLocked(deps, tx, await lockAsRead(tx, proven))
    },
    { readsByKeys: true },
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
 * Withdraws the pending rows of a range of blocks that a majority denies, at any depth: where it was undecided when they were read. Begins no
 * further vote after ten seconds: the rows that are left are decided when they are final. Returns how many.
 */
export async function withdrawInvented(
  deps: ScanDeps & { readonly reads: Pick<ConfirmedReads, 'areInvented'> },
  lease: WatcherLease,
  network: Network,
  { from, to, nowMs }: { readonly from: bigint; readonly to: bigint; readonly nowMs: () => number },
): Promise<number> {
  const untilMs = nowMs() + turnMsMax
  let withdrawn = 0
  let after: ConfirmedTo = { blockNumber: from, id: 'wtx_' }
  for (;;) {
    const rows = await listPending(deps.db, network.name, { upTo: to, after, limit: rowsMost })
    const verdicts = await deps.reads.areInvented(rows.map(claimOf))
    withdrawn += await withdrawRows(
      deps,
      lease,
      rows.filter((_, index) => verdicts[index] === 'yes'),
    )
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsMost || nowMs() >= untilMs) return withdrawn
    after = last
  }
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

/** Confirms rows; one that may be an open sweep waits for the sweep's end. */
async function confirmLocked(deps: PublishDeps, tx: Tx, locked: readonly TransactionRow[]): Promise<void> {
  if (locked.length === 0) return
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
