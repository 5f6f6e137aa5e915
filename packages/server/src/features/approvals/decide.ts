import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { type Background, type Call, callerId } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { Problem } from '../../platform/errors.ts'
import { newId } from '../../platform/ids.ts'
import { inParallel } from '../../platform/in-parallel.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import type { ByOwner } from '../../platform/work/by-owner.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { listEndedRequesters, refuseEndedCaller } from '../callers/index.ts'
import { type DueCursors, withShareOwners } from '../plans/index.ts'
import { lockPolicy, reservePolicyAgain, underPolicy } from '../wallets/index.ts'
import type { Ctx, Deps } from './ports.ts'
import { type Approval, type ApprovalKind, type ApprovalRefusal, fail } from './schema.ts'
import { getApproval } from './show.ts'
import {
  type ApprovalId,
  type ApprovalRow,
  countApprovers,
  countOpen,
  type Decision,
  findApproval,
  findCreator,
  insertApproval,
  isAnyExpired,
  isAnyToApply,
  lockApproval,
  lockExpired,
  markDecided,
  type NewApproval,
  takeToApply,
} from './store.ts'

/** Returns why a caller may not approve a request; undefined if the caller may. `approvers`: how many people could. */
function whyNotApprove(
  row: Pick<ApprovalRow, 'status' | 'expiresAt' | 'accountId'>,
  { accountId, approvers, now }: { readonly accountId: string; readonly approvers: number; readonly now: Date },
): Problem | undefined {
  return (
    whyNotOpen(row, now) ?? (row.accountId === accountId && approvers > 1 ? fail('approval-own-request') : undefined)
  )
}

function whyNotOpen({ status, expiresAt }: Pick<ApprovalRow, 'status' | 'expiresAt'>, now: Date): Problem | undefined {
  if (status !== 'waiting') return fail('approval-not-waiting', { approvalStatus: status })
  return expiresAt <= now ? fail('approval-not-waiting', { approvalStatus: 'expired' }) : undefined
}

/**
 * Approves a request as the person who calls. The present policy is evaluated again, as if the movement were requested now: an approval
 * lifts `approvalAbove` and nothing else. Throws 401 or 403 if the person signed out or lost the role since the call was admitted, and 409 if the key that made the request was revoked, or if the person who made it may not make it any
 * more. The movement begins after this commit, once, in the process that applies decisions.
 */
export async function approve(ctx: Ctx, approvalId: ApprovalId): Promise<Approval> {
  const known = await findApproval(ctx.db, ctx.tenant, approvalId)
  if (known === undefined) throw fail('approval-not-found')
  const { person } = ctx
  if (person === undefined) throw fail('approval-needs-person')
  await underPolicy(ctx, async (tx) => {
    // The wallet is locked first, in the order of the transaction that requests an approval.
    await lockPolicy(tx, ctx.tenant, known.masterWalletId)
    const row = await lockOrFail(ctx, tx, approvalId)
    const now = ctx.clock.now()
    const { accountId } = person
    await refuseEndedCaller(ctx, tx, 'admin')
    const approvers = await countApprovers(tx, ctx.tenant, { accountId, after: row.createdAt })
    const refusal = whyNotApprove(row, { accountId, approvers: approvers.count, now })
    if (refusal !== undefined) throw refusal
    const ended = await listEndedRequesters(tx, ctx.tenant, [{ id: row.apiKeyId ?? row.accountId, sessionId: null }])
    if (ended.length > 0) throw fail('approval-requester-not-allowed')
    await reservePolicyAgain(ctx, tx, row)
    const granted = { status: 'granted', at: now, by: accountId, reason: null } as const
    await decideAs(ctx, tx, row, { ...granted, isApproverNewer: approvers.isNewer })
  })
  return getApproval(ctx, approvalId)
}

/** Refuses a request as the person who calls. Its subject fails with `approval-refused`. Returns when the witness covers it. */
export function refuse(ctx: Ctx, approvalId: ApprovalId, { reason }: ApprovalRefusal): Promise<Approval> {
  return endWaiting(ctx, approvalId, () => {
    const { person } = ctx
    if (person === undefined) throw fail('approval-needs-person')
    return { status: 'refused', by: person.accountId, reason: reason ?? null }
  })
}

/** Cancels a request on behalf of its requester. Its subject fails with `approval-canceled`. Returns when the witness covers it. */
export function cancel(ctx: Ctx, approvalId: ApprovalId): Promise<Approval> {
  const by = callerId(ctx.actor)
  return endWaiting(ctx, approvalId, (row) => {
    if (by !== row.apiKeyId && by !== row.accountId) throw fail('approval-not-yours')
    return { status: 'canceled', by, reason: null }
  })
}

/** Stores a decision that ends a request, and returns when the witness covers it. If the request no longer waits, throws 409, also once it is covered. */
async function endWaiting(
  ctx: Ctx,
  approvalId: ApprovalId,
  decisionOn: (row: ApprovalRow) => Omit<Decision, 'at'>,
): Promise<Approval> {
  const closed = await ctx.db.tx(async (tx) => {
    const row = await lockOrFail(ctx, tx, approvalId)
    const decision = decisionOn(row)
    const at = ctx.clock.now()
    const refusal = whyNotOpen(row, at)
    tx.beforeReturn(refusal === undefined ? ctx.witness.cover : ctx.witness.coverRepetition)
    if (refusal === undefined) await decideAs(ctx, tx, row, { ...decision, at })
    return refusal
  })
  if (closed !== undefined) throw closed
  return getApproval(ctx, approvalId)
}

async function lockOrFail(ctx: Pick<Ctx, 'tenant'>, tx: Tx, approvalId: ApprovalId): Promise<ApprovalRow> {
  const row = await lockApproval(tx, ctx.tenant, approvalId)
  if (row === undefined) throw fail('approval-not-found')
  return row
}

async function decideAs(
  ctx: Pick<Ctx, 'audit' | 'idempotency' | 'publish'>,
  tx: Tx,
  row: ApprovalRow,
  decision: Decision,
): Promise<void> {
  await storeDecision(ctx, tx, row, decision)
  await ctx.idempotency?.commit(tx, row.id)
}

const actions = {
  granted: 'approvals.approve',
  refused: 'approvals.refuse',
  canceled: 'approvals.cancel',
  expired: 'approvals.expire',
} as const

/** Stores a decision with its event and audit record. The caller must have locked the row and checked that it is `waiting`. */
async function storeDecision(
  ctx: Pick<Ctx, 'audit' | 'publish'>,
  tx: Tx,
  row: ApprovalRow,
  decision: Decision,
): Promise<void> {
  const { status, by, reason, at } = decision
  if (!(await markDecided(tx, row.id, decision))) throw new Error('an approval was decided twice')
  const payload = payloadOf(row)
  if (status === 'granted') {
    const granted = { ...payload, decidedBy: String(by), grantedAt: at.toISOString() }
    await ctx.publish(tx, 'approval.granted', granted)
  } else {
    const refused = { ...payload, status, decidedBy: by, reason: reason ?? null, refusedAt: at.toISOString() }
    await ctx.publish(tx, 'approval.refused', refused)
  }
  const { kind, subjectId } = row
  // Whoever requests a movement could make a second account of theirs an admin and approve as that one.
  const newer = decision.isApproverNewer === true && { isApproverNewer: true }
  await ctx.audit(tx, { action: actions[status], target: row.id, details: { kind, subjectId, reason, ...newer } })
}

const expiresAfterMs = 86_400_000
const openMax = 20

/** A movement that waits for an approval, as its requester wants it. */
export type WantedApproval = Omit<NewApproval, 'id' | 'apiKeyId' | 'accountId' | 'createdAt' | 'expiresAt'>

/**
 * Stores an approval request in the transaction that stores its subject, with its event and audit record. The caller has locked the
 * wallet whose policy requires it. Returns 429 `too-many-open-approvals` if 20 of that wallet and its children are open.
 */
export async function requestApproval(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'publish' | 'random' | 'tenant'>,
  tx: Tx,
  wanted: WantedApproval,
): Promise<ApprovalId | Problem> {
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

async function requesterOf(
  { actor, tenant }: Pick<Ctx, 'actor' | 'tenant'>,
  tx: Tx,
): Promise<Pick<NewApproval, 'apiKeyId' | 'accountId'>> {
  if (actor.kind === 'person') return { apiKeyId: null, accountId: actor.accountId }
  if (actor.kind !== 'api-key') throw new Error(`${callerId(actor)} requests no approval`)
  const creator = await findCreator(tx, tenant, actor.apiKeyId)
  if (creator === undefined) throw new Error('an API key without a creator')
  return { apiKeyId: actor.apiKeyId, accountId: creator.accountId }
}

/** The members that all events of an approval have. */
function payloadOf(row: Omit<NewApproval, 'createdAt'>) {
  const { id: approvalId, kind, subjectId, walletId, token, chain, recipient: to, note } = row
  const isWithdrawal = kind === 'withdrawal'
  return {
    approvalId,
    kind,
    transactionId: isWithdrawal ? null : subjectId,
    withdrawalId: isWithdrawal ? subjectId : null,
    walletId,
    amount: formatAmount(row.rawAmount, row.decimals),
    token,
    chain,
    to,
    note,
    requestedBy: row.apiKeyId ?? row.accountId,
  }
}

const pageRows = 50

/**
 * Expires approvals that were not decided in time. Idempotent: each is decided under its row lock, and locked rows are skipped, since another caller
 * is deciding them.
 */
export const expireApprovals: RecurringTask<Deps> = {
  name: 'approvals.expire',
  everyMs: 1_000,
  isDue: ({ clock }) => isAnyExpired(clock.now()),
  run: (system) =>
    repeatWhile(system, () =>
      system.db.tx(async (tx) => {
        const at = system.clock.now()
        const rows = await lockExpired(tx, at, pageRows)
        for (const row of rows)
          await storeDecision(forTenant(system, row), tx, row, { status: 'expired', at, by: null, reason: null })
        return rows.length === pageRows
      }),
    ),
}

/** Most decisions that are written at the same time. */
const writtenAtOnce = 20
const retryMs = 10_000
/** Milliseconds after the decision for which a movement that cannot begin is retried, for example while a node does not respond. */
const beginMsMax = 3_600_000

/** A feature's handler of decisions about its movements. Its functions change nothing unless `markApplied` returns true. */
export interface Application<D extends Deps> {
  readonly name: string
  readonly kinds: readonly ApprovalKind[]
  /**
   * Limits concurrent starts of approved movements, by the network or partner that they read, so that an unresponsive one, or one share owner, delays
   * no others. Omitted for movements that only write when they start.
   */
  readonly slow?: {
    readonly limits: (deps: D) => ByOwner
    /** Returns the name of the source that the beginning of each movement reads, by the id of the movement. */
    readonly listSources: (db: Queryable, subjectIds: readonly string[]) => Promise<ReadonlyMap<string, string>>
  }
  /** Begins an approved movement. Throws a problem if it cannot begin. */
  readonly begin: (ctx: D & Call, approval: ApprovalRow) => Promise<void>
  /** Fails a movement for this reason, and releases what it reserved. */
  readonly end: (ctx: D & Call, approval: ApprovalRow, reason: string) => Promise<void>
}

/**
 * Applies decisions: begins what was approved, and fails what was not. A process that dies leaves the decision to the next run. Safe to run twice
 * concurrently: `markApplied` returns true to only one of two runs.
 */
export function applyDecisions<D extends Deps>(application: Application<D>): RecurringTask<D> {
  const { kinds } = application
  const cursors: DueCursors = new Map()
  return {
    name: application.name,
    everyMs: 500,
    isDue: ({ clock }) => isAnyToApply(kinds, clock.now()),
    async run(system, detach) {
      const now = system.clock.now()
      const until = instantOf(now.getTime() + retryMs)
      const rows = await system.db.tx((tx) => takeToApply(tx, { kinds, now, until, cursors }), { readsInOrder: true })
      const begun = await applyAll(system, { application, stopping: detach?.stopping }, rows)
      if (detach === undefined) await Promise.all(begun)
      else for (const one of begun) detach(one)
    },
  }
}

/** Applies decisions by what their application reads. Only approved movements read anything. */
async function applyAll<D extends Deps>(
  system: D & Background,
  { application, stopping }: { readonly application: Application<D>; readonly stopping: AbortSignal | undefined },
  rows: readonly ApprovalRow[],
): Promise<readonly Promise<void>[]> {
  const apply = (row: ApprovalRow) => applyOne(forTenant(system, row), application, row)
  const { slow } = application
  const isSlow = ({ status }: ApprovalRow) => slow !== undefined && status === 'granted'
  const quick = rows.filter((row) => !isSlow(row))
  const written = inParallel(quick, writtenAtOnce, apply).then(() => undefined)
  const waiting = rows.filter(isSlow)
  if (slow === undefined || waiting.length === 0) return [written]
  const sources = await slow.listSources(
    system.db,
    waiting.map(({ subjectId }) => subjectId),
  )
  const owned = await withShareOwners(system.db, waiting)
  const bySource = Map.groupBy(owned, ({ subjectId }) => sources.get(subjectId) ?? '')
  return [written, ...[...bySource].map(([source, some]) => slow.limits(system)(source, some, apply, stopping))]
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
