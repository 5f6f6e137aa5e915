import { attoOf, formatAmount, parseAddress } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Queryable, Tx } from '../../../platform/db/db.ts'
import { isProblem, type Problem } from '../../../platform/errors.ts'
import type { MasterWalletId } from '../../../platform/ids.ts'
import { failPolicy } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import {
  approvalLimitOf,
  capOf,
  decide,
  denialSentence,
  type EffectivePolicy,
  gasRuleAgainst,
  type PolicyOperation,
  type PolicyRule,
  type PolicyUsage,
  type PolicyWindow,
  windowStartsAt,
} from './decide.ts'
import {
  claimOf,
  claimSubjectOf,
  findGas,
  findPolicy,
  gasSubjectOf,
  insertReservations,
  isReserved,
  listPolicied,
  listPolicies,
  lockPolicies,
  lockPolicy,
  markReleased,
  markReserved,
  type NewReservation,
  type PolicyAt,
  setAmounts,
} from './store.ts'
import { type Since, sumUsage, sumUsages } from './usage-store.ts'

/** An outgoing movement of a master wallet or a child of it. */
export interface OutgoingMovement {
  readonly masterWalletId: MasterWalletId
  readonly operation: PolicyOperation
  /** Symbol of the token that leaves. */
  readonly token: string
  /** In the token's smallest unit. */
  readonly rawAmount: bigint
  readonly decimals: number
  /** An address, or the id of a bank account. */
  readonly recipient: string
  /** From a child to its own master, which policies neither refuse nor count. */
  readonly isToOwnMaster?: boolean
  readonly gas?: Gas | undefined
  /** Maximum cost of the transaction that the master sends later to complete the movement on another chain. */
  readonly claimGas?: Gas | undefined
}

/** Maximum cost of a movement in addition to its amount: gas and top-ups, in the smallest unit of the coin or token that pays. */
export interface Gas {
  readonly token: string
  readonly rawAmount: bigint
  readonly decimals: number
  /** Whether the master pays any of it. Gas that a child pays to move money to its own master is counted and not refused. */
  readonly isOfMaster: boolean
}

/**
 * Counts a movement against the wallet's policy, in the transaction that stores the movement, or refuses it with 403 `policy-denied`. The
 * master's row stays locked until that transaction ends, so that concurrent processes cannot exceed a cap. It is stored even without a
 * policy, so that a later policy counts earlier movements. A second call for the same subject changes nothing. Call it inside
 * `underPolicy`, which records the refusal in the audit log. Returns the policy's `approvalAbove` if the movement exceeds it: the caller
 * then stores the movement as waiting for an approval.
 */
export async function reservePolicy(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  movement: OutgoingMovement & { readonly subjectId: string },
): Promise<string | undefined> {
  const { masterWalletId, subjectId } = movement
  if (!(await lockPolicy(tx, ctx.tenant, masterWalletId))) throw new Error('a movement from an unknown wallet')
  if (await isReserved(tx, ctx.tenant, subjectId)) return undefined
  const policy = await findPolicy(tx, ctx.tenant, masterWalletId)
  await refuseDenied(tx, ctx.tenant, movement, { policy })
  await insertReservations(tx, ctx.tenant, reservationsOf(movement))
  return policy === undefined ? undefined : approvalAboveOf(policy.document, movement)
}

function approvalAboveOf(document: EffectivePolicy, movement: OutgoingMovement): string | undefined {
  if (movement.isToOwnMaster === true) return undefined
  const { token: symbol, decimals, rawAmount } = movement
  return approvalLimitOf(document, { token: { symbol, decimals }, rawAmount })
}

/**
 * Evaluates a movement that is counted already against the present policy, as if it were requested now, and counts it from now on in
 * every window. Throws 403 `policy-denied`. For a movement that waited: the policy may be tighter, and the windows have moved on.
 */
export async function reservePolicyAgain(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  movement: OutgoingMovement & { readonly subjectId: string },
): Promise<void> {
  const { masterWalletId, subjectId } = movement
  if (!(await lockPolicy(tx, ctx.tenant, masterWalletId))) throw new Error('a movement from an unknown wallet')
  const policy = await findPolicy(tx, ctx.tenant, masterWalletId)
  const subjectIds = [subjectId, gasSubjectOf(subjectId), claimSubjectOf(subjectId)]
  const countedAs = async (name: string): Promise<Gas | undefined> => {
    const found = await findGas(tx, ctx.tenant, name)
    return found && { ...found, decimals: 18, isOfMaster: true }
  }
  const gas = await countedAs(gasSubjectOf(subjectId))
  const counted = { ...movement, gas, claimGas: await countedAs(claimSubjectOf(subjectId)) }
  await refuseDenied(tx, ctx.tenant, counted, { policy, except: subjectIds })
  await markReserved(tx, ctx.tenant, subjectIds)
}

/** Replaces the amount that a movement counts, in the token's smallest unit. */
export function replaceAmount(
  tx: Tx,
  { subjectId, rawAmount, decimals }: Pick<Reserving, 'subjectId' | 'rawAmount' | 'decimals'>,
): Promise<void> {
  return setAmounts(tx, [{ subjectId, attoAmount: attoOf(rawAmount, decimals) }])
}

/** Replaces the gas that a movement reserved by that of a new plan; undefined if it needs none. */
export async function replaceGas(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  { gas, ...paid }: Pick<Reserving, 'masterWalletId' | 'subjectId'> & { readonly gas: Gas | undefined },
): Promise<void> {
  if (gas !== undefined) await countGas(ctx, tx, { ...paid, gas })
  const attoAmount = gas === undefined ? 0n : attoOf(gas.rawAmount, gas.decimals)
  await setActualGas(tx, [{ subjectId: paid.subjectId, attoAmount }])
}

/** Releases the gas that a movement reserved and that another subject counts from now on, or nothing does. Idempotent. */
export function releaseGas(tx: Tx, subjectId: string): Promise<void> {
  return setActualGas(tx, [{ subjectId, attoAmount: 0n }])
}

type Reserving = OutgoingMovement & { readonly subjectId: string }

function reservationsOf(movement: Reserving): NewReservation[] {
  const { masterWalletId, operation, token, subjectId, rawAmount, decimals, gas, claimGas, isToOwnMaster } = movement
  const amount = { subjectId, masterWalletId, operation, token, attoAmount: attoOf(rawAmount, decimals) }
  const claim = claimGas && { ...gasOf(movement, claimGas), subjectId: claimSubjectOf(subjectId) }
  return [
    ...(isToOwnMaster === true ? [] : [amount]),
    ...(gas === undefined ? [] : [gasOf(movement, gas)]),
    ...(claim === undefined ? [] : [claim]),
  ]
}

function gasOf({ masterWalletId, subjectId }: Pick<Reserving, 'masterWalletId' | 'subjectId'>, gas: Gas) {
  const { token, rawAmount, decimals } = gas
  const attoAmount = attoOf(rawAmount, decimals)
  return {
    subjectId: gasSubjectOf(subjectId),
    masterWalletId,
    operation: 'gas',
    token,
    attoAmount,
  } as const
}

/**
 * Counts gas that completes work in progress: a top-up, a claim, a revoked approval. It is never refused, since the money would stay where
 * it is.
 */
export function countGas(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  paid: Pick<Reserving, 'masterWalletId' | 'subjectId'> & { readonly gas: Gas },
): Promise<void> {
  return insertReservations(tx, ctx.tenant, [gasOf(paid, paid.gas)])
}

/** Replaces the gas that is expected for the claim of a movement; undefined if it needs none, or if the claim itself is counted from now on. */
export function replaceClaimGas(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  claimed: Pick<Reserving, 'masterWalletId' | 'subjectId'> & { readonly gas: Gas | undefined },
): Promise<void> {
  return replaceGas(ctx, tx, { ...claimed, subjectId: claimOf(claimed.subjectId) })
}

/** Replaces the gas of subjects with its actual cost, in 1e-18 of the coin. Idempotent. */
function setActualGas(
  tx: Tx,
  costs: readonly { readonly subjectId: string; readonly attoAmount: bigint }[],
): Promise<void> {
  return setAmounts(
    tx,
    costs.map(({ subjectId, attoAmount }) => ({ subjectId: gasSubjectOf(subjectId), attoAmount })),
  )
}

/** The verdict of a policy about a movement. */
export interface Reserved {
  /** The reason why it was not counted. */
  readonly refusal?: Problem
  /** The limit above which a person must approve it, if it exceeds that. */
  readonly approvalAbove?: string | undefined
}

/**
 * Does what `reservePolicy` does for several movements of one tenant, in order: each is counted, or its refusal is
 * returned, which does not affect the others.
 */
export async function reservePolicies(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  movements: readonly Reserving[],
): Promise<readonly Reserved[]> {
  if (movements.length === 0) return []
  const masters = [...new Set(movements.map(({ masterWalletId }) => masterWalletId))]
  // Sent together: the server executes the second statement when the first has its locks.
  const [areKnown, policied] = await Promise.all([
    lockPolicies(tx, ctx.tenant, masters),
    listPolicied(tx, ctx.tenant, masters),
  ])
  if (!areKnown) throw new Error('a movement from an unknown wallet')
  const reserved: Reserved[] = []
  for (const movement of movements)
    reserved.push(policied.has(movement.masterWalletId) ? await reservedOf(ctx, tx, movement) : {})
  const free = movements.filter(({ masterWalletId }) => !policied.has(masterWalletId))
  if (free.length > 0) await insertReservations(tx, ctx.tenant, free.flatMap(reservationsOf))
  return reserved
}

async function reservedOf(ctx: Pick<Ctx, 'tenant'>, tx: Tx, movement: Reserving): Promise<Reserved> {
  try {
    return { approvalAbove: await reservePolicy(ctx, tx, movement) }
  } catch (error) {
    if (isProblem(error, 'policy-denied')) return { refusal: error }
    throw error
  }
}

async function refuseDenied(tx: Tx, tenant: Tenant, movement: OutgoingMovement, at: Evaluation): Promise<void> {
  const denial = await denialOf(tx, tenant, movement, at)
  if (denial === undefined) return
  const { masterWalletId, operation, recipient } = movement
  const detail = denialSentence({ ...denial, operation, recipient })
  throw failPolicy('policy-denied', { detail, ...denial, masterWalletId, operation, recipient })
}

/** Releases the reservation of a movement that failed with its money in place. Idempotent; does nothing for one that reserved nothing. */
export function releasePolicy(tx: Tx, tenant: Tenant, subjectId: string, now: Date): Promise<void> {
  return markReleased(tx, tenant, subjectId, now)
}

/** The rule that would refuse the movement now, or null; reserves nothing. */
export async function policyWouldDeny(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  movement: OutgoingMovement,
): Promise<PolicyRule | null> {
  const policy = await findPolicy(ctx.db, ctx.tenant, movement.masterWalletId)
  return (await denialOf(ctx.db, ctx.tenant, movement, { policy }))?.rule ?? null
}

interface Denial {
  readonly rule: PolicyRule
  readonly token: string
  /** Amount of the movement, in whole tokens. */
  readonly amount: string
  /** For a cap: its amount and its use, in whole tokens. */
  readonly cap?: string
  readonly used?: string
}

/** A policy as of the evaluation, and the subjects that do not count: those of the movement itself. */
interface Evaluation {
  readonly policy: PolicyAt | undefined
  readonly except?: readonly string[]
}

async function denialOf(
  db: Queryable,
  tenant: Tenant,
  wanted: OutgoingMovement,
  { policy, except = [] }: Evaluation,
): Promise<Denial | undefined> {
  if (policy === undefined) return undefined
  const { document, readAt } = policy
  const usageOf = (token: string) =>
    sumUsage(db, tenant, { masterWalletId: wanted.masterWalletId, token, except }, sinceAt(readAt))
  const { operation, token, rawAmount, decimals, gas, claimGas, isToOwnMaster } = wanted
  if (isToOwnMaster !== true) {
    const usage = await usageOf(token)
    const recipient = parseAddress(wanted.recipient) ?? wanted.recipient
    const verdict = decide(document, { operation, token: { symbol: token, decimals }, rawAmount, recipient }, usage)
    const amount = formatAmount(rawAmount, decimals)
    if (!verdict.allowed) return { token, amount, ...explained(verdict.rule, document.tokens[token], usage) }
  }
  const spent = new Map(isToOwnMaster === true ? [] : [[token, attoOf(rawAmount, decimals)]])
  for (const paid of [gas, claimGas]) {
    if (paid === undefined || paid.rawAmount === 0n || (isToOwnMaster === true && !paid.isOfMaster)) continue
    const usage = await usageOf(paid.token)
    const beside = spent.get(paid.token) ?? 0n
    const rule = gasRuleAgainst(document, paid, { usage, beside })
    const amount = formatAmount(paid.rawAmount, paid.decimals)
    if (rule !== undefined) return { token: paid.token, amount, ...explained(rule, document.tokens[paid.token], usage) }
    spent.set(paid.token, beside + attoOf(paid.rawAmount, paid.decimals))
  }
  return undefined
}

function sinceAt(now: Date): Since {
  const { perHour, perDay, perMonth } = windowStartsAt(now.getTime())
  return { perHour: instantOf(perHour), perDay: instantOf(perDay), perMonth: instantOf(perMonth) }
}

function explained(
  rule: PolicyRule,
  caps: EffectivePolicy['tokens'][string] | undefined,
  usage: PolicyUsage,
): Pick<Denial, 'rule' | 'cap' | 'used'> {
  if (rule === 'operation' || rule === 'recipient' || rule === 'token') return { rule }
  const cap = caps?.[rule]
  if (cap === undefined) throw new Error('a cap refused that the policy does not have')
  return rule === 'perTransaction' ? { rule, cap } : { rule, cap, used: formatAmount(usage[rule], 18) }
}

/** The verdict of the current policy about a movement that waits for approval. */
export interface PolicyStanding {
  /** The rule that would refuse it now; null if none would. Gas is left out. */
  readonly deniedBy: PolicyRule | null
  /** The remaining amount of each cap after the movement, in whole tokens, 0 if it would exceed the cap; null where there is no cap. */
  readonly remaining: Readonly<Record<PolicyWindow, string | null>>
}

type Waiting = OutgoingMovement & { readonly subjectId: string }

const unused: PolicyUsage = { perHour: 0n, perDay: 0n, perMonth: 0n }

/** Evaluates movements that are counted already as if each were requested now, in their order. Two queries, however many there are. */
export async function policyStandings(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  waiting: readonly Waiting[],
): Promise<readonly PolicyStanding[]> {
  if (waiting.length === 0) return []
  const { db, tenant } = ctx
  const masters = [...new Set(waiting.map(({ masterWalletId }) => masterWalletId))]
  const found = await listPolicies(db, tenant, masters)
  const policies = new Map(found.map(({ masterWalletId, document }) => [masterWalletId, document]))
  const [first] = found
  if (first === undefined) return waiting.map((movement) => standingOf(undefined, movement, unused))
  const questions = waiting.map(({ masterWalletId, token, subjectId }) => ({
    masterWalletId,
    token,
    except: [subjectId],
  }))
  const usages = await sumUsages(db, tenant, questions, sinceAt(first.readAt))
  return waiting.map((movement, index) => {
    const usage = usages[index]
    if (usage === undefined) throw new Error('a usage is missing')
    return standingOf(policies.get(movement.masterWalletId), movement, usage)
  })
}

function standingOf(document: EffectivePolicy | undefined, wanted: Waiting, usage: PolicyUsage): PolicyStanding {
  const { operation, token, decimals, rawAmount } = wanted
  const recipient = parseAddress(wanted.recipient) ?? wanted.recipient
  const verdict = decide(document, { operation, token: { symbol: token, decimals }, rawAmount, recipient }, usage)
  const caps = document !== undefined && Object.hasOwn(document.tokens, token) ? document.tokens[token] : undefined
  const after = (window: PolicyWindow): string | null => {
    const cap = capOf(caps?.[window])
    if (cap === undefined) return null
    const remaining = cap - usage[window] - attoOf(rawAmount, decimals)
    return formatAmount(remaining > 0n ? remaining : 0n, 18)
  }
  const [perHour, perDay, perMonth] = [after('perHour'), after('perDay'), after('perMonth')]
  return { deniedBy: verdict.allowed ? null : verdict.rule, remaining: { perHour, perDay, perMonth } }
}
