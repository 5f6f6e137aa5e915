import type { Tx } from '../../../platform/db/db.ts'
import { isProblem, type Problem } from '../../../platform/errors.ts'
import type { Ctx } from '../ports.ts'

const refusals = { 'policy-denied': 'wallets.policy.deny', 'policy-loosening-denied': 'wallets.policy.refuse' } as const

/**
 * Runs the work in a transaction, and records a policy's refusal in the audit log, in a separate transaction, since the first one is rolled
 * back.
 */
export async function underPolicy<T>(ctx: Ctx, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await ctx.db.tx(work)
  } catch (error) {
    await keepRefusal(ctx, error)
    throw error
  }
}

/** Records a policy's refusal in the audit log after the transaction of the work ended; ignores other errors. */
export async function keepRefusal(ctx: Ctx, error: unknown): Promise<void> {
  for (const [code, action] of Object.entries(refusals))
    if (isProblem(error, code)) await ctx.db.tx((tx) => auditRefusal(ctx, tx, action, error))
}

function auditRefusal(ctx: Pick<Ctx, 'audit'>, tx: Tx, action: string, { members }: Problem): Promise<void> {
  const { masterWalletId, ...details } = members
  return ctx.audit(tx, { action, target: String(masterWalletId), details })
}
