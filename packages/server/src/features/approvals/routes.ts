import { id } from '../../platform/ids.ts'
import type { Operation } from '../../platform/operation.ts'
import { policyErrors } from '../wallets/index.ts'
import { approve, cancel, refuse } from './decide.ts'
import type { Ctx, Deps } from './ports.ts'
import { operation } from './ports.ts'
import { Approval, ApprovalListQuery, ApprovalParams, ApprovalRefusal, fail } from './schema.ts'
import { getApproval, pageOfApprovals } from './show.ts'

const { 'approval-not-found': notFound, 'approval-not-waiting': notWaiting } = fail.table
const { 'approval-needs-person': needsPerson } = fail.table
const open = { 'approval-not-found': notFound, 'approval-not-waiting': notWaiting }

/** The present state, for a repeated request whose first response was never stored. */
function approvalState(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, approvalId: string) {
  return getApproval(ctx, id('apr').parse(approvalId))
}

/** As `approvalState`, of a request that the first call ended: the first response was not sent if the witness did not cover it. */
async function endedState(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant' | 'witness'>, approvalId: string) {
  await ctx.witness.coverRepetition()
  return approvalState(ctx, approvalId)
}

export const approvalOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'approvals.list',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/approvals',
    summary: 'List the approvals that spend policies required, newest first.',
    description: "Each is of a movement of money above `approvalAbove` of a wallet's policy.",
    query: ApprovalListQuery,
    output: Approval,
    list: true,
    run: (ctx, { query }) => pageOfApprovals(ctx, query),
  }),
  operation({
    id: 'approvals.get',
    needs: { role: 'viewer', scope: 'read' },
    agent: 'reads',
    method: 'GET',
    path: '/approvals/{id}',
    summary: 'Get an approval.',
    description:
      'While it waits, `deniedBy` shows whether the present policy would refuse the movement, and `remaining` what each cap still allows.',
    params: ApprovalParams,
    output: Approval,
    errors: { 'approval-not-found': notFound },
    run: (ctx, { params }) => getApproval(ctx, params.id),
  }),
  operation({
    id: 'approvals.approve',
    needs: { role: 'admin', scope: 'money', fresh: true },
    method: 'POST',
    path: '/approvals/{id}/approve',
    summary: 'Approve a movement that waits.',
    description:
      'For a person who is signed in as owner or admin, and who did not make the request if the organisation has another one. The present policy is evaluated again; the movement then begins.',
    params: ApprovalParams,
    output: Approval,
    errors: {
      ...open,
      ...policyErrors,
      'approval-needs-person': needsPerson,
      'approval-own-request': fail.table['approval-own-request'],
      'approval-requester-not-allowed': fail.table['approval-requester-not-allowed'],
    },
    // A denial by the policy is recorded in the audit log after the transaction.
    idempotency: 'intent',
    resume: approvalState,
    run: (ctx, { params }) => approve(ctx, params.id),
  }),
  operation({
    id: 'approvals.refuse',
    needs: { role: 'admin', scope: 'money' },
    whileSuspended: true,
    method: 'POST',
    path: '/approvals/{id}/refuse',
    summary: 'Refuse a movement that waits; it fails, and its funds are free again.',
    description: 'For a person who is signed in as owner or admin.',
    params: ApprovalParams,
    input: ApprovalRefusal,
    output: Approval,
    errors: { ...open, 'approval-needs-person': needsPerson },
    idempotency: 'intent',
    resume: endedState,
    run: (ctx, { params, body }) => refuse(ctx, params.id, body),
  }),
  operation({
    id: 'approvals.cancel',
    needs: { role: 'member', scope: 'money' },
    whileSuspended: true,
    agent: 'ends',
    method: 'POST',
    path: '/approvals/{id}/cancel',
    summary: 'Cancel your own request that waits for an approval.',
    description: 'For the API key or the person that made the request, and for the person who created that key.',
    settingCost: 1,
    params: ApprovalParams,
    output: Approval,
    errors: { ...open, 'approval-not-yours': fail.table['approval-not-yours'] },
    idempotency: 'intent',
    resume: endedState,
    run: (ctx, { params }) => cancel(ctx, params.id),
  }),
]
