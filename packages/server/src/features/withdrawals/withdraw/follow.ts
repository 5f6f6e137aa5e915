import type { OffRamp, Payout, PayoutFailure, PayoutState } from '../../../partners/offramp/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { withShareOwners } from '../../plans/index.ts'
import { findTransfer } from '../../transfers/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import { begin, partnerOf, requestedPayout, startOf } from './begin.ts'
import { type DueRow, isAnyDue, listDue, takeDue } from './due-store.ts'
import { complete, end, recordConversion, recordRefund } from './end.ts'
import {
  deleteHint,
  findWithdrawal,
  lockWithdrawal,
  setNextPoll,
  setPartnerStatus,
  type WithdrawalId,
  type WithdrawalRow,
} from './store.ts'

/**
 * Advances a withdrawal by one step, from its rows only: to its transfer, then with the transfer's outcome, then with the partner's status.
 * Idempotent, also over several processes.
 */
export async function follow(ctx: Ctx, withdrawalId: WithdrawalId): Promise<void> {
  const row = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
  if (row === undefined || (row.status === 'failed' && !isOwed(row))) return
  if (row.transferId === null || row.payoutId === null) return begin(ctx, row)
  const transfer = await findTransfer(ctx.db, ctx.tenant, row.transferId)
  if (transfer?.status === 'failed' && row.status !== 'failed')
    return endUndelivered(ctx, row, transfer.reason ?? 'reverted')
  if (transfer?.status === 'confirmed') await followPayout(ctx, row, row.payoutId)
}

/**
 * Fails a withdrawal whose tokens never reached the partner, which then owes nothing. If the partner has reported completion, that status
 * stays.
 */
function endUndelivered(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'publish' | 'tenant'>,
  { id: withdrawalId }: WithdrawalRow,
  reason: string,
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, withdrawalId)
    const unspent = reason === 'not-received' ? {} : { isUnspent: true as const }
    if (row.status !== 'completed') await end(ctx, tx, row, { reason, refund: null, ...unspent })
  })
}

async function followPayout(ctx: Ctx, row: WithdrawalRow, payoutId: string): Promise<void> {
  const partner: OffRamp = partnerOf(ctx, row)
  const readAt = ctx.clock.now()
  const payout = await partner.readPayout(payoutId, await requestedPayout(ctx, row))
  const about = { partner: partner.name, withdrawalId: row.id }
  if (payout === undefined) ctx.log.warn(about, 'the partner does not know a payout that it created; waiting')
  else await applyStatus(ctx, row.id, { payout, readAt })
  await deleteHint(ctx.db, { partner: partner.name, payoutId }, readAt)
}

/**
 * Whether a newer reading of the payout may have failed the withdrawal after this one began, in another process. Such a reading changes nothing: an old
 * `completed` would complete the withdrawal again, and its failure would be published twice. While the partner has the tokens, the next poll is soon.
 */
export function isLateReading({ status, failedAt }: Pick<WithdrawalRow, 'status' | 'failedAt'>, readAt: Date): boolean {
  return status === 'failed' && failedAt !== null && failedAt > readAt
}

/** Stores the partner's status in the row, in one transaction with its event. `readAt`: when the request to the partner began. */
function applyStatus(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'log' | 'publish' | 'tenant'>,
  withdrawalId: WithdrawalId,
  { payout, readAt }: { readonly payout: Payout; readonly readAt: Date },
): Promise<void> {
  return ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, withdrawalId)
    if (isLateReading(row, readAt)) return
    const progress = progressOf(row.status, payout.state)
    // Of a failed one the operator needs to see what the partner does with its tokens.
    if (progress === 'stale' && row.status !== 'failed') return
    await setPartnerStatus(tx, ctx.tenant, row.id, payout)
    if (progress === 'paid') return completeFailed(ctx, tx, row)
    const refund = refundNow(row, payout)
    if (refund !== undefined) await recordRefund(ctx, tx, row, refund)
    if (progress === 'same' || progress === 'stale') return
    if (payout.state === 'conversion_complete') await recordConversion(ctx, tx, row)
    if (payout.state === 'completed') await complete(ctx, tx, row)
    if (payout.state !== 'failed') return
    const reason = progress === 'returned' ? 'payout-returned' : 'payout-failed'
    await end(ctx, tx, row, { reason, refund: refundOf(payout) })
  })
}

/**
 * Completes a failed withdrawal that its partner paid after all. Its owner may have paid the bank account again since. One whose refund is
 * reported stays failed: the partner contradicts itself.
 */
async function completeFailed(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'log' | 'publish' | 'tenant'>,
  tx: Tx,
  row: WithdrawalRow,
): Promise<void> {
  const { id: withdrawalId, partner, reason, refund } = row
  ctx.log.error({ partner, withdrawalId, reason, refund }, 'a partner paid a withdrawal that had failed')
  if (isOwed(row)) await complete(ctx, tx, row)
}

/**
 * The new refund state of a failed withdrawal whose tokens the partner still has, if the payout names another one than the row. A payout that is
 * `failed` without a refund state, or in progress again, changes nothing.
 */
export function refundNow(row: Known, payout: Pick<Payout, 'failure'>): PayoutFailure['refund'] | undefined {
  if (!isOwed(row) || payout.failure === undefined) return undefined
  const refund = refundOf(payout)
  return refund === row.refund ? undefined : refund
}

/** The refund state of tokens that the partner has received, whatever status the payout has. */
function refundOf({ failure }: Pick<Payout, 'failure'>): PayoutFailure['refund'] {
  const refund = failure?.refund ?? 'expected'
  return refund === 'none' ? 'held' : refund
}

/** Delay before a poll is retried that failed, or whose process died. */
const retryMs = 30_000

/**
 * Continues the withdrawals that are due; a hint from its partner makes one due. A partner or a network that does not respond delays only its own
 * withdrawals. Among these, no share owner delays those of another. No later run waits for it. Idempotent: each step is taken under the
 * withdrawal's row lock, from its rows.
 */
export const followWithdrawals: RecurringTask<Deps> = {
  name: 'withdrawals.follow',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyDue(clock.now()),
  async run(ctx, detach) {
    const { limits, cursors } = ctx.followedWithdrawals
    const due = await ctx.db.tx((tx) => listDue(tx, ctx.clock.now(), cursors), { readsInOrder: true })
    const owned = await withShareOwners(ctx.db, due)
    const polls = [...Map.groupBy(owned, ({ source }) => source)].map(([source, rows]) =>
      limits(source, rows, (row) => followOne(ctx, row), detach?.stopping),
    )
    if (detach === undefined) await Promise.all(polls)
    else for (const one of polls) detach(one)
  },
}

/** Follows a withdrawal that has got its place. One that waits for a place is not taken, so that no time of it runs out. Does not reject. */
async function followOne(system: Omit<Ctx, 'tenant'>, row: DueRow): Promise<void> {
  const { id: withdrawalId, organisationId, environment } = row
  const ctx = forTenant(system, { organisationId, environment })
  try {
    const begunAt = ctx.clock.now()
    const until = instantOf(begunAt.getTime() + retryMs)
    if (!(await takeDue(ctx.db, ctx.tenant, withdrawalId, { now: begunAt, until }))) return
    await follow(ctx, withdrawalId)
    const followed = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
    if (followed === undefined) return
    const now = ctx.clock.now().getTime()
    const waitMs = nextPollMs(followed, now - (followed.failedAt ?? startOf(followed)).getTime())
    await setNextPoll(ctx.db, ctx.tenant, withdrawalId, waitMs === undefined ? null : instantOf(now + waitMs))
  } catch (error) {
    ctx.log.warn({ err: error, withdrawalId }, 'a withdrawal could not continue; retrying')
  }
}

interface Known {
  readonly status: PayoutState
  readonly refund: PayoutFailure['refund'] | null
}

/** Whether the partner still has the tokens of a failed withdrawal. */
function isOwed({ status, refund }: Known): boolean {
  return status === 'failed' && (refund === 'expected' || refund === 'held')
}

const hourMs = 3_600_000
const shortest = 1_000
const longestUnderWay = hourMs / 12
const longestCompleted = 6 * hourMs
const returnable = 30 * 24 * hourMs

/**
 * Milliseconds until the next poll of a withdrawal that began, or last failed, this long ago: an eighth of the time, so that a young one is
 * polled often. A completed one is polled for thirty days, since a bank may return money, and a failed one as long while the partner must
 * return its tokens. `undefined`: only a hint makes it due.
 */
export function nextPollMs(known: Known, ageMs: number): number | undefined {
  const isEnded = known.status === 'completed' || known.status === 'failed'
  if (isEnded && (ageMs > returnable || (known.status === 'failed' && !isOwed(known)))) return undefined
  const longest = isEnded ? longestCompleted : longestUnderWay
  return Math.min(longest, Math.max(shortest, Math.floor(ageMs / 8)))
}

const order: Readonly<Record<PayoutState, number>> = {
  pending_conversion: 0,
  conversion_complete: 1,
  completed: 2,
  failed: 3,
}

/**
 * Compares a partner's status with the stored one. `same`: no change. `forward`: it progressed. `returned`: paid money came back, so a
 * completed withdrawal failed after all. `paid`: the bank was paid after the failure. `stale`: an older status; it changes no status.
 */
export function progressOf(known: PayoutState, seen: PayoutState): 'same' | 'forward' | 'returned' | 'paid' | 'stale' {
  if (known === seen) return 'same'
  if (known === 'failed' && seen === 'completed') return 'paid'
  if (known === 'failed' || order[seen] < order[known]) return 'stale'
  return known === 'completed' ? 'returned' : 'forward'
}
