import { formatAmount, type Network } from '@purser/protocol'
import type { BlockReads, TransferReceipt } from '../../../chain/block-port.ts'
import type { Deps, Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { publishEvents } from '../../../platform/events.ts'
import type { EventId } from '../../../platform/ids.ts'
import { isVirtual } from './booking.ts'
import type { Lease } from './cursor-store.ts'
import { holdCursor, withdraw } from './store-scan.ts'
import { listPending, lockPending, markConfirmed, type TransactionRow } from './transaction-store.ts'

type ConfirmDeps = Deps & { readonly reads: Pick<BlockReads, 'receiptsAtEachNode'> }

const rowsMost = 100

/**
 * Confirms what is final: rows in blocks up to the given one. Each transaction is asked for once more, at every node: it must stand in the very
 * block where it was seen, with the same log, as all of them tell it that know it. A row that is not so waits; its status and its event commit
 * together, and a row that has its event never gets another.
 */
export async function confirmUpTo(deps: ConfirmDeps, lease: Lease, network: Network, upTo: bigint): Promise<void> {
  let after: Pick<TransactionRow, 'blockNumber' | 'id'> = { blockNumber: -1n, id: 'wtx_' }
  for (;;) {
    const rows = await listPending(deps.db, network.name, { upTo, after, limit: rowsMost })
    const last = rows.at(-1)
    if (last === undefined) return
    await confirmRows(deps, lease, rows)
    if (rows.length < rowsMost) return
    after = last
  }
}

async function confirmRows(deps: ConfirmDeps, lease: Lease, rows: readonly TransactionRow[]): Promise<void> {
  const hashes = [...new Set(rows.map(({ txHash }) => txHash))]
  const nodes = await deps.reads.receiptsAtEachNode(hashes)
  const verdictOf = (row: TransactionRow): Verdict =>
    judge(
      row,
      nodes.map((receipts) => receipts[hashes.indexOf(row.txHash)]),
    )
  const byVerdict = Map.groupBy(rows, verdictOf)
  const [proven, invented] = [byVerdict.get('proven') ?? [], byVerdict.get('invented') ?? []]
  for (const { id, txHash, network } of byVerdict.get('open') ?? [])
    deps.log.warn({ id, txHash, network }, 'a transaction is not told alike by all nodes yet; it waits')
  if (proven.length + invented.length === 0) return
  await deps.db.tx(async (tx) => {
    await holdCursor(tx, lease)
    await withdraw(deps, tx, await lockPending(tx, invented))
    await confirmLocked(deps, tx, await lockPending(tx, proven))
  })
}

type Verdict = 'proven' | 'invented' | 'open'

/**
 * What the nodes' receipts say of a row. `proven`: all that have one tell the row's block and its log. `invented`: all tell the row's block and
 * none the log, so that whoever gave the log lied. `open`: anything else.
 */
export function judge(row: TransactionRow, receipts: readonly (TransferReceipt | undefined)[]): Verdict {
  const told = receipts.filter((receipt) => receipt !== undefined)
  if (told.length === 0 || told.some(({ blockHash }) => blockHash !== row.blockHash)) return 'open'
  const withLog = told.filter(({ transfers }) => transfers.some((transfer) => isOf(row, transfer)))
  if (withLog.length === told.length) return 'proven'
  return withLog.length === 0 ? 'invented' : 'open'
}

/** Behind a virtual address the row names whoever sent to it. */
function isOf(row: TransactionRow, transfer: TransferReceipt['transfers'][number]): boolean {
  return (
    transfer.logIndex === row.logIndex &&
    transfer.token === row.token.toLowerCase() &&
    (transfer.from === row.from.toLowerCase() || isVirtual(transfer.from)) &&
    transfer.to === row.to.toLowerCase() &&
    transfer.rawAmount === row.rawAmount
  )
}

async function confirmLocked(deps: Deps, tx: Tx, rows: readonly TransactionRow[]): Promise<void> {
  if (rows.length === 0) return
  const now = deps.clock.now()
  const events = new Map<string, EventId>()
  for (const [tenant, deposits] of byTenant(rows.filter(isNewDeposit))) {
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
}

function isNewDeposit({ direction, kind, eventId }: TransactionRow): boolean {
  return direction === 'in' && kind === 'transfer' && eventId === null
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
