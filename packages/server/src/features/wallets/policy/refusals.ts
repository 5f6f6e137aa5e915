import type { Tx } from '../../../platform/db/db.ts'
import { isProblem, type Problem } from '../../../platform/errors.ts'
import type { Ctx } from '../ports.ts'

const refusals = { 'policy-denied': 'wallets.policy.deny', 'policy-loosening-denied': 'wallets.policy.refuse' } as const
/** Most of a policy's places that a record of a refusal names. */
const errorsMax = 10

/**
 * Runs the work in a transaction, and records a policy's refusal in the audit log, in a separate transaction, since the first one is rolled
 * back.
 */
export async function underPolicy<T>(
  ctx: Pick<Ctx, 'audit' | 'db' | 'takeRefusalRecord'>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await ctx.db.tx(work)
  } catch (error) {
    await keepRefusal(ctx, error)
    throw error
  }
}

/**
 * Records a policy's refusal in the audit log after the transaction of the work ended; ignores other errors. A caller beyond the limit of such records
 * leaves none, since nothing deletes them; its next record has the number of those that are missing.
 */
export async function keepRefusal(ctx: Pick<Ctx, 'audit' | 'db' | 'takeRefusalRecord'>, error: unknown): Promise<void> {
  for (const [code, action] of Object.entries(refusals)) {
    if (!isProblem(error, code)) continue
    const unrecorded = ctx.takeRefusalRecord === undefined ? 0 : ctx.takeRefusalRecord()
    if (unrecorded !== undefined) await ctx.db.tx((tx) => auditRefusal(ctx, tx, { action, unrecorded }, error))
  }
}

function auditRefusal(
  ctx: Pick<Ctx, 'audit'>,
  tx: Tx,
  { action, unrecorded }: { readonly action: string; readonly unrecorded: number },
  { members }: Problem,
): Promise<void> {
  const { masterWalletId, errors, ...details } = members
  const shown = Array.isArray(errors) ? { errors: errors.slice(0, errorsMax) } : {}
  return ctx.audit(tx, {
    action,
    target: String(masterWalletId),
    details: { ...details, ...shown, ...(unrecorded > 0 && { unrecorded }) },
  })
}
