import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { callerId } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { Problem } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { fail } from './errors.ts'
import { payloadOf } from './events.ts'
import type { Ctx } from './ports.ts'
import { type ApprovalId, countOpen, findCreator, insertApproval, type NewApproval } from './store.ts'

const expiresAfterMs = 86_400_000
const openMax = 20

/** A movement that waits for an approval, as its requester wants it. */
export type WantedApproval = Omit<NewApproval, 'id' | 'apiKeyId' | 'accountId' | 'createdAt' | 'expiresAt'>

/**
 * Stores an approval request in the transaction that stores its subject, with its event and audit record. The caller has locked the
 * wallet whose policy requires it. Returns 429 `too-many-open-approvals` if 20 of that wallet and its children are open.
 */
export async function requestApproval(ctx: Ctx, tx: Tx, wanted: WantedApproval): Promise<ApprovalId | Problem> {
  const now = ctx.clock.now()
  const { masterWalletId, kind, subjectId, walletId: from, recipient: to, token, approvalAbove } = wanted
  if ((await countOpen(tx, masterWalletId, now)) >= openMax)
    return fail('too-many-open-approvals', { masterWalletId, limit: openMax })
  const expiresAt = instantOf(now.getTime() + expiresAfterMs)
  const row = { ...wanted, ...(await requesterOf(ctx, tx)), id: newId('apr', ctx), createdAt: now, expiresAt }
  await insertApproval(tx, ctx.tenant, row)
  await ctx.publish(tx, 'approval.requested', {
    ...payloadOf(row),
    approvalAbove,
    expiresAt: expiresAt.toISOString(),
    requestedAt: now.toISOString(),
  })
  const amount = formatAmount(row.rawAmount, row.decimals)
  await ctx.audit(tx, {
    action: 'approvals.request',
    target: row.id,
    details: { kind, subjectId, from, to, token, amount, approvalAbove },
  })
  return row.id
}

async function requesterOf({ actor, tenant }: Ctx, tx: Tx): Promise<Pick<NewApproval, 'apiKeyId' | 'accountId'>> {
  if (actor.kind === 'person') return { apiKeyId: null, accountId: actor.accountId }
  if (actor.kind !== 'api-key') throw new Error(`${callerId(actor)} requests no approval`)
  const creator = await findCreator(tx, tenant, actor.apiKeyId)
  if (creator === undefined) throw new Error('an API key without a creator')
  return { apiKeyId: actor.apiKeyId, accountId: creator.accountId }
}
