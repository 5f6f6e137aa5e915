import { instantOf } from '../../platform/clock.ts'
import type { Call } from '../../platform/ctx.ts'
import { Problem } from '../../platform/errors.ts'
import type { Recurring } from '../../platform/job.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { storeDecision } from './decide.ts'
import type { Deps } from './ports.ts'
import type { ApprovalKind } from './schema.ts'
import { type ApprovalRow, isAnyExpired, isAnyToApply, lockExpired, takeToApply } from './store.ts'

const pageRows = 50

/**
 * Ends approvals that nobody decided in time. Idempotent: each is decided under its row's lock, and a locked one is skipped, since
 * somebody decides it.
 */
export const expireApprovals: Recurring<Deps> = {
  name: 'approvals.expire',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyExpired(clock.now()),
  async run(system) {
    for (let expired = pageRows; expired === pageRows; )
      expired = await system.db.tx(async (tx) => {
        const at = system.clock.now()
        const rows = await lockExpired(tx, at, pageRows)
        for (const row of rows)
          await storeDecision(forTenant(system, row), tx, row, { status: 'expired', at, by: null, reason: null })
        return rows.length
      })
  },
}

const appliedAtOnce = 20
const retryMs = 10_000
/** Longest after the decision that a movement which cannot begin, such as for a node that does not respond, is retried. */
const beginMsMax = 3_600_000

/** How a feature applies decisions about what it stores. Both functions change nothing unless `markApplied` returns true. */
export interface Application<D extends Deps> {
  readonly name: string
  readonly kinds: readonly ApprovalKind[]
  /** Begins an approved movement. Throws a problem if it cannot begin. */
  readonly begin: (ctx: D & Call, approval: ApprovalRow) => Promise<void>
  /** Fails a movement for this reason, and releases what it reserved. */
  readonly end: (ctx: D & Call, approval: ApprovalRow, reason: string) => Promise<void>
}

/**
 * Applies decisions: begins what was approved, and fails what was not. A process that dies leaves the decision to the next run. Safe to run
 * twice concurrently: of two applications `markApplied` lets one change anything.
 */
export function applyDecisions<D extends Deps>(application: Application<D>): Recurring<D> {
  return {
    name: application.name,
    everyMs: 500,
    isDue: ({ clock }) => isAnyToApply(application.kinds, clock.now()),
    async run(system) {
      const now = system.clock.now()
      const until = instantOf(now.getTime() + retryMs)
      const rows = await takeToApply(system.db, { kinds: application.kinds, now, until, limit: appliedAtOnce })
      await Promise.all(rows.map((row) => applyOne(forTenant(system, row), application, row)))
    },
  }
}

async function applyOne<D extends Deps>(
  ctx: D & Call,
  { begin, end }: Application<D>,
  row: ApprovalRow,
): Promise<void> {
  try {
    if (row.status !== 'granted') return await end(ctx, row, `approval-${row.status}`)
    await begin(ctx, row)
  } catch (error) {
    const code = endingCode(row, error, ctx.clock.now())
    if (code === undefined)
      return ctx.log.warn({ err: error, approvalId: row.id }, 'a decision could not be applied; retrying')
    await end(ctx, row, code).catch((failure: unknown) =>
      ctx.log.error({ err: failure, approvalId: row.id }, 'an approved movement could not be ended; retrying'),
    )
  }
}

/** The reason for which an approved movement fails; undefined if it is retried. */
function endingCode(
  { status, decidedAt }: Pick<ApprovalRow, 'status' | 'decidedAt'>,
  error: unknown,
  now: Date,
): string | undefined {
  if (status !== 'granted' || !(error instanceof Problem)) return undefined
  const isLate = decidedAt !== null && now.getTime() - decidedAt.getTime() > beginMsMax
  if (error.entry.status >= 500 && !isLate) return undefined
  return error.code === 'price-too-low' ? 'quote-expired' : error.code
}
