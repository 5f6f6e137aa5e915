import { formatAmount } from '@purser/protocol'
import type { z } from 'zod'
import { id, type MasterWalletId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import type { Ctx } from '../ports.ts'
import { fail } from './errors.ts'
import type { Sweep, SweepChild, SweepParams, SweepSummary } from './schema.ts'
import {
  findSweep,
  findSweptWallet,
  listSweepChildren,
  listSweeps,
  type SweepChildRow,
  type SweepSummaryRow,
} from './store.ts'

export async function getSweep(ctx: Ctx, params: z.output<typeof SweepParams>): Promise<Sweep> {
  const sweep = await findSweep(ctx.db, ctx.tenant, params)
  if (sweep === undefined) throw fail('sweep-not-found')
  const children = await listSweepChildren(ctx.db, ctx.tenant, sweep.id)
  return { ...shownSummary(sweep), children: children.map((child) => shownChild(child, sweep.decimals)) }
}

/** The present state of a sweep, for a repeat of the request that created it. */
export async function resumeSweep(ctx: Ctx, resourceId: string): Promise<Sweep> {
  const sweepId = id('swp').parse(resourceId)
  const walletId = await findSweptWallet(ctx.db, ctx.tenant, sweepId)
  if (walletId === undefined) throw fail('sweep-not-found')
  return getSweep(ctx, { id: walletId, sweepId })
}

export async function pageOfSweeps(
  ctx: Ctx,
  walletId: MasterWalletId,
  query: z.output<typeof PageQuery>,
): Promise<Page<SweepSummary>> {
  await requireMasterWallet(ctx, walletId)
  const page = { limit: query.limit, after: openCursor(query.cursor) }
  const rows = await listSweeps(ctx.db, ctx.tenant, walletId, page)
  const { items, next } = pageOf(rows, query.limit, (row) => row.id)
  return { items: items.map(shownSummary), next }
}

function shownSummary(row: SweepSummaryRow): SweepSummary {
  const {
    id: sweepId,
    masterWalletId,
    chain,
    token,
    trigger,
    status,
    isPartial,
    childCount,
    createdAt,
    completedAt,
  } = row
  return {
    id: sweepId,
    masterWalletId,
    chain,
    token,
    trigger,
    status,
    isPartial,
    childCount,
    amount: formatAmount(row.rawAmount, row.decimals),
    sweptAmount: formatAmount(row.sweptRawAmount, row.decimals),
    createdAt,
    completedAt,
  }
}

function shownChild(row: SweepChildRow, decimals: number): SweepChild {
  const { childAddressId, fromAddress, rawAmount, status, txHash, failureReason } = row
  return {
    childAddressId,
    address: fromAddress,
    amount: formatAmount(rawAmount, decimals),
    status: status === 'planned' || status === 'signed' ? 'pending' : status,
    txHash,
    reason: failureReason,
  }
}
