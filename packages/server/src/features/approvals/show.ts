import { formatAmount } from '@purser/protocol'
import { isId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, pageOf } from '../../platform/wire.ts'
import { type PolicyStanding, policyStandings } from '../wallets/index.ts'
import type { Ctx } from './ports.ts'
import { type Approval, type ApprovalListQuery, type ApprovalState, fail } from './schema.ts'
import { type ApprovalId, findApproval, listApprovals, listStates, type NamedApproval } from './store.ts'

export async function getApproval(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  approvalId: ApprovalId,
): Promise<Approval> {
  const row = await findApproval(ctx.db, ctx.tenant, approvalId)
  if (row === undefined) throw fail('approval-not-found')
  const [one] = await shown(ctx, [row])
  if (one === undefined) throw new Error('an approval has no public form')
  return one
}

export async function pageOfApprovals(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  query: ApprovalListQuery,
): Promise<Page<Approval>> {
  const { limit, cursor, status, walletId } = query
  const rows = await listApprovals(ctx.db, ctx.tenant, { limit, after: openCursor(cursor), status, walletId })
  const page = pageOf(rows, limit, (row) => row.id)
  return { ...page, items: await shown(ctx, page.items) }
}

/** The approvals of transfers or withdrawals, by their ids. Queries nothing if none of them has one. */
export async function approvalStates(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  rows: readonly { readonly approvalId: ApprovalId | null }[],
): Promise<ReadonlyMap<string | null, ApprovalState>> {
  const approvalIds = rows.flatMap(({ approvalId }) => (approvalId === null ? [] : [approvalId]))
  if (approvalIds.length === 0) return new Map()
  return new Map((await listStates(ctx.db, ctx.tenant, approvalIds)).map((row) => [row.id, row]))
}

async function shown(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, rows: readonly NamedApproval[]): Promise<Approval[]> {
  const waiting = rows.filter(({ status }) => status === 'waiting')
  const standings = await policyStandings(ctx, waiting)
  const byId = new Map(waiting.map(({ id }, index) => [id, standings[index]]))
  return rows.map((row) => shownWith(row, byId.get(row.id)))
}

function shownWith(row: NamedApproval, standing: PolicyStanding | undefined): Approval {
  const { kind, subjectId } = row
  return {
    id: row.id,
    status: row.status,
    expiresAt: row.expiresAt,
    kind,
    transferId: isId('wtx', subjectId) ? subjectId : null,
    withdrawalId: isId('wdr', subjectId) ? subjectId : null,
    paymentId: row.paymentId,
    masterWalletId: row.masterWalletId,
    fromWalletId: row.walletId,
    to: row.recipient,
    amount: formatAmount(row.rawAmount, row.decimals),
    token: row.token,
    chain: row.chain,
    toToken: row.toToken,
    toChain: row.toChain,
    approvalAbove: row.approvalAbove,
    deniedBy: standing?.deniedBy ?? null,
    remaining: standing?.remaining ?? null,
    note: row.note,
    requestedBy: { apiKeyId: row.apiKeyId, apiKeyName: row.apiKeyName, accountId: row.accountId, email: row.email },
    createdAt: row.createdAt,
    decidedAt: row.decidedAt,
    decidedBy: row.decidedBy,
    reason: row.reason,
  }
}
