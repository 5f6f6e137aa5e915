import { formatAmount, parseAddress } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx, Tenant } from '../../../platform/ctx.ts'
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import { isProblem, type Problem } from '../../../platform/errors.ts'
import type { MasterWalletId } from '../../../platform/ids.ts'
import { decide, gasRuleAgainst, type PolicyRule, type Usage, windowStartsAt } from './decide.ts'
import { attoOf, type PolicyDocument, type PolicyOperation } from './document.ts'
import { failPolicy } from './errors.ts'
import {
  findPolicy,
  insertReservations,
  isReserved,
  listPolicied,
  lockPolicies,
  lockPolicy,
  markReleased,
  type NewReservation,
  setAmounts,
  sumUsage,
} from './store.ts'

/** Money that is about to leave a master wallet or a child of it. */
export interface OutgoingMovement {
  readonly masterWalletId: MasterWalletId
  readonly operation: PolicyOperation
  /** Symbol of what leaves. */
  readonly token: string
  /** In the token's smallest unit. */
  readonly rawAmount: bigint
  readonly decimals: number
  /** An address, or the id of a bank account. */
  readonly recipient: string
  /** From a child to its own master, which no policy refuses or counts. */
  readonly isToOwnMaster?: boolean
  readonly gas?: Gas | undefined
}

/** What a movement costs beside its amount, at most: gas and top-ups, in the smallest unit of what pays for them. */
export interface Gas {
  readonly token: string
  readonly rawAmount: bigint
  readonly decimals: number
  /** Whether the master pays any of it. What a child pays to move money to its own master is counted and not refused. */
  readonly isOfMaster: boolean
}

/**
 * Counts a movement against the wallet's policy, in the transaction that makes the movement, or refuses it with 403 `policy-denied`.
 * The master's row stays locked until that transaction ends, so that no number of processes goes over a cap. It is written where no
 * policy is, too: one that is set later counts what left before. A second call for the same subject changes nothing. Call it inside
 * `underPolicy`, which keeps the refusal in the audit log.
 */
export async function reservePolicy(
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  tx: Tx,
  movement: OutgoingMovement & { readonly subjectId: string },
): Promise<void> {
  const { masterWalletId, subjectId } = movement
  if (!(await lockPolicy(tx, ctx.tenant, masterWalletId))) throw new Error('a movement out of a wallet of nobody')
  if (await isReserved(tx, ctx.tenant, subjectId)) return
  const reservedAt = ctx.clock.now()
  await refuseDenied(tx, ctx.tenant, movement, reservedAt)
  await insertReservations(tx, ctx.tenant, reservationsOf(movement, reservedAt))
}

type Reserving = OutgoingMovement & { readonly subjectId: string }

function reservationsOf(movement: Reserving, reservedAt: Date): NewReservation[] {
  const { masterWalletId, operation, token, subjectId, rawAmount, decimals, gas, isToOwnMaster } = movement
  const amount = { subjectId, masterWalletId, operation, token, attoAmount: attoOf(rawAmount, decimals), reservedAt }
  return [...(isToOwnMaster === true ? [] : [amount]), ...(gas === undefined ? [] : [gasOf(movement, gas, reservedAt)])]
}

function gasOf(
  { masterWalletId, subjectId }: Pick<Reserving, 'masterWalletId' | 'subjectId'>,
  gas: Gas,
  reservedAt: Date,
) {
  const { token, rawAmount, decimals } = gas
  const attoAmount = attoOf(rawAmount, decimals)
  return {
    subjectId: gasSubjectOf(subjectId),
    masterWalletId,
    operation: 'gas',
    token,
    attoAmount,
    reservedAt,
  } as const
}

/** The name under which a subject's gas is counted, apart from its amount, which is given back when it fails. */
function gasSubjectOf(subjectId: string): string {
  return `${subjectId} gas`
}

/**
 * Counts gas that brings to its end what is under way already: a refill, a claim, an approval that is taken back. It is never refused, since the
 * money would stay where it is.
 */
export function countGas(
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  tx: Tx,
  paid: Pick<Reserving, 'masterWalletId' | 'subjectId'> & { readonly gas: Gas },
): Promise<void> {
  return insertReservations(tx, ctx.tenant, [gasOf(paid, paid.gas, ctx.clock.now())])
}

/** Corrects the gas of subjects to what it cost in the end, in 1e-18 of the coin; harmless twice. */
export function settleGas(
  tx: Tx,
  costs: readonly { readonly subjectId: string; readonly attoAmount: bigint }[],
): Promise<void> {
  return setAmounts(
    tx,
    costs.map(({ subjectId, attoAmount }) => ({ subjectId: gasSubjectOf(subjectId), attoAmount })),
  )
}

/**
 * The same for several movements of one tenant, in their order: each is counted, or has its refusal in the answer, which takes nothing from
 * the others.
 */
export async function reservePolicies(
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  tx: Tx,
  movements: readonly Reserving[],
): Promise<readonly (Problem | undefined)[]> {
  if (movements.length === 0) return []
  const masters = [...new Set(movements.map(({ masterWalletId }) => masterWalletId))]
  if (!(await lockPolicies(tx, ctx.tenant, masters))) throw new Error('a movement out of a wallet of nobody')
  const policied = await listPolicied(tx, ctx.tenant, masters)
  const refusals: (Problem | undefined)[] = []
  for (const movement of movements)
    refusals.push(policied.has(movement.masterWalletId) ? await refusalOf(ctx, tx, movement) : undefined)
  const free = movements.filter(({ masterWalletId }) => !policied.has(masterWalletId))
  const reservedAt = ctx.clock.now()
  if (free.length > 0)
    await insertReservations(
      tx,
      ctx.tenant,
      free.flatMap((movement) => reservationsOf(movement, reservedAt)),
    )
  return refusals
}

async function refusalOf(
  ctx: Pick<Ctx, 'tenant' | 'clock'>,
  tx: Tx,
  movement: Reserving,
): Promise<Problem | undefined> {
  try {
    await reservePolicy(ctx, tx, movement)
    return undefined
  } catch (error) {
    if (isProblem(error, 'policy-denied')) return error
    throw error
  }
}

async function refuseDenied(tx: Tx, tenant: Tenant, movement: OutgoingMovement, now: Date): Promise<void> {
  const denial = await denialOf(tx, tenant, movement, now)
  if (denial === undefined) return
  const { masterWalletId, operation, recipient } = movement
  throw failPolicy('policy-denied', { ...denial, masterWalletId, operation, recipient })
}

/** Gives back what a movement reserved, because it failed and the money is where it was; harmless twice, and for one that reserved nothing. */
export function releasePolicy(tx: Tx, tenant: Tenant, subjectId: string, now: Date): Promise<void> {
  return markReleased(tx, tenant, subjectId, now)
}

/** The rule that would refuse the movement now, or null; reserves nothing. */
export async function policyWouldDeny(
  ctx: Pick<Ctx, 'db' | 'tenant' | 'clock'>,
  movement: OutgoingMovement,
): Promise<PolicyRule | null> {
  return (await denialOf(ctx.db, ctx.tenant, movement, ctx.clock.now()))?.rule ?? null
}

interface Denial {
  readonly rule: PolicyRule
  readonly token: string
  /** What would leave, in whole tokens. */
  readonly amount: string
  /** Of a cap: what it is, and what of it is used, in whole tokens. */
  readonly cap?: string
  readonly used?: string
}

async function denialOf(
  db: Queryable,
  tenant: Tenant,
  wanted: OutgoingMovement,
  now: Date,
): Promise<Denial | undefined> {
  const policy = await findPolicy(db, tenant, wanted.masterWalletId)
  if (policy === undefined) return undefined
  const { document } = policy
  const usageOf = (token: string) => {
    const { perHour, perDay, perMonth } = windowStartsAt(now.getTime())
    const since = { perHour: instantOf(perHour), perDay: instantOf(perDay), perMonth: instantOf(perMonth) }
    return sumUsage(db, tenant, { masterWalletId: wanted.masterWalletId, token }, since)
  }
  const { operation, token, rawAmount, decimals, gas, isToOwnMaster } = wanted
  if (isToOwnMaster !== true) {
    const usage = await usageOf(token)
    const recipient = parseAddress(wanted.recipient) ?? wanted.recipient
    const verdict = decide(document, { operation, token: { symbol: token, decimals }, rawAmount, recipient }, usage)
    const amount = formatAmount(rawAmount, decimals)
    if (!verdict.allowed) return { token, amount, ...explained(verdict.rule, document.tokens[token], usage) }
  }
  if (gas === undefined || gas.rawAmount === 0n || (isToOwnMaster === true && !gas.isOfMaster)) return undefined
  const usage = await usageOf(gas.token)
  const beside = isToOwnMaster !== true && gas.token === token ? attoOf(rawAmount, decimals) : 0n
  const rule = gasRuleAgainst(document, gas, { usage, beside })
  if (rule === undefined) return undefined
  const amount = formatAmount(gas.rawAmount, gas.decimals)
  return { token: gas.token, amount, ...explained(rule, document.tokens[gas.token], usage) }
}

function explained(
  rule: PolicyRule,
  caps: PolicyDocument['tokens'][string] | undefined,
  usage: Usage,
): Pick<Denial, 'rule' | 'cap' | 'used'> {
  if (rule === 'operation' || rule === 'recipient' || rule === 'token') return { rule }
  const cap = caps?.[rule]
  if (cap === undefined) throw new Error('a cap refused that the policy does not have')
  return rule === 'perTransaction' ? { rule, cap } : { rule, cap, used: formatAmount(usage[rule], 18) }
}

const refusals = { 'policy-denied': 'wallets.policy.deny', 'policy-loosening-denied': 'wallets.policy.refuse' } as const

/** Runs the work in a transaction, and keeps in the audit log what a policy refused of it: in one of its own, since that one is undone. */
export async function underPolicy<T>(ctx: Ctx, work: (tx: Tx) => Promise<T>): Promise<T> {
  try {
    return await ctx.db.tx(work)
  } catch (error) {
    await keepRefusal(ctx, error)
    throw error
  }
}

/** Keeps in the audit log what a policy refused of work whose transaction is over; what is no refusal of a policy is none of its business. */
export async function keepRefusal(ctx: Ctx, error: unknown): Promise<void> {
  for (const [code, action] of Object.entries(refusals))
    if (isProblem(error, code)) await ctx.db.tx((tx) => auditRefusal(ctx, tx, action, error))
}

function auditRefusal(ctx: Ctx, tx: Tx, action: string, { members }: Problem): Promise<void> {
  const { masterWalletId, ...details } = members
  return ctx.audit(tx, { action, target: String(masterWalletId), details })
}
