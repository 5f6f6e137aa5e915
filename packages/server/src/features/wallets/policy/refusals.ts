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
  ctx: Pick<Ctx, 'audit' | 'db' | 'mayRecordRefusal'>,
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
 * Records a policy's refusal in the audit log after the transaction of the work ended; ignores other errors. Each record counts as a change of
 * settings, since nothing deletes it: a caller beyond that limit leaves none.
 */
export async function keepRefusal(ctx: Pick<Ctx, 'audit' | 'db' | 'mayRecordRefusal'>, error: unknown): Promise<void> {
  for (const [code, action] of Object.entries(refusals))
    if (isProblem(error, code) && ctx.mayRecordRefusal?.() !== false)
      await ctx.db.tx((tx) => auditRefusal(ctx, tx, action, error))
}

function auditRefusal(ctx: Pick<Ctx, 'audit'>, tx: Tx, action: string, { members }: Problem): Promise<void> {
  const { masterWalletId, errors, ...details } = members
  const shown = Array.isArray(errors) ? { errors: errors.slice(0, errorsMax) } : {}
  return ctx.audit(tx, { action, target: String(masterWalletId), details: { ...details, ...shown } })
}
