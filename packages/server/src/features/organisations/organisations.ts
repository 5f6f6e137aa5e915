import type { z } from 'zod'
import type { Auditing } from '../../platform/audit.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { type AccountId, newId, type OrganisationId } from '../../platform/ids.ts'
import { refuseEndedAccount } from '../callers/index.ts'
import { freePlan, type PlanName } from '../plans/index.ts'
import { type Acting, auditIn, callersAccount, type Limits, limitsOf, lockAsCaller, makeApiKey } from './api-keys.ts'
import { fail } from './errors.ts'
import { insertMember } from './member-store.ts'
import type { Ctx } from './ports.ts'
import type { CreatedOrganisation, NewApiKey, NewOrganisation, Organisation, OrganisationType } from './schema.ts'
import {
  findOrganisation,
  insertOrganisation,
  lockOrganisation,
  lockOwnership,
  markPlan,
  markRenamed,
  markResumed,
  markSuspended,
} from './store.ts'

/** Most organisations of an account that it makes itself. */
const organisationsMax = 10

export interface Founding {
  readonly name: string
  readonly type: OrganisationType
  readonly plan: PlanName
  readonly ownerId: AccountId
  /** The account that makes it; left out where the operator does. */
  readonly madeBy?: AccountId
  /** One key is created for each. */
  readonly environments: readonly Environment[]
  /** Limits and makers of its keys, if they have some. */
  readonly limits?: Limits
}

/** Creates an organisation with its owner, its first keys and the first records of its audit log, all or nothing. */
export async function foundOrganisation(
  ctx: Acting,
  tx: Tx,
  founding: Founding,
): Promise<{ readonly organisation: Organisation; readonly apiKeys: readonly NewApiKey[] }> {
  const { name, type, plan, ownerId, madeBy = null } = founding
  const active = { suspendedAt: null, suspensionReason: null }
  const organisation = { id: newId('org', ctx), name, type, plan, createdAt: ctx.clock.now(), ...active }
  await insertOrganisation(tx, organisation, { ownerId, madeBy })
  const { createdAt } = organisation
  const invitation = { invitedEmail: null, invitedAs: null, invitedByKey: null, invitedBy: null }
  const joined = { isLive: true, createdAt, acceptedAt: createdAt, ...invitation }
  const owner = { accountId: ownerId, role: 'owner', ...joined } as const
  await insertMember(tx, organisation.id, owner)
  await auditIn(
    ctx,
    tx,
    { organisationId: organisation.id, environment: null },
    {
      action: 'organisations.create',
      target: organisation.id,
      details: { name, type, plan, owner: ownerId },
    },
  )
  const apiKeys: NewApiKey[] = []
  for (const environment of founding.environments) {
    const request = { name: `First ${environment} key`, environment, createdBy: ownerId, ...founding.limits }
    apiKeys.push(await makeApiKey(ctx, tx, organisation.id, request))
  }
  return { organisation, apiKeys }
}

/**
 * Creates an organisation on the hobby plan, owned by the account behind the calling key, with one test key that only this
 * response shows. The caller's own audit log records it too, so that a stolen key that creates organisations leaves a trace. Where sign-up is
 * closed, an account that only an invitation admitted makes none: each would have quotas of its own.
 */
export function createOrganisation(ctx: Ctx, request: NewOrganisation): Promise<z.input<typeof CreatedOrganisation>> {
  return ctx.db.tx(async (tx) => {
    const owner = await callersAccount(ctx, tx)
    const { organisations, isFirstOwner, isAnySuspended } = await lockOwnership(tx, owner.id)
    await refuseEndedAccount(ctx, tx)
    if (isAnySuspended) throw failPlatform('organisation-suspended', { detail: ownsSuspended })
    if (!isFirstOwner && !ctx.isSignUpOpen) throw fail('sign-up-closed')
    if (organisations >= organisationsMax) throw fail('organisation-limit-reached')
    const limits = await limitsOf(ctx, tx, {})
    const by = { ownerId: owner.id, madeBy: owner.id }
    const founding: Founding = { ...request, ...by, plan: freePlan, environments: ['test'], limits }
    const { organisation, apiKeys } = await foundOrganisation(ctx, tx, founding)
    await ctx.audit(tx, { action: 'organisations.create', target: organisation.id, details: { name: request.name } })
    return { ...organisation, apiKeys: [...apiKeys] }
  })
}

const ownsSuspended =
  'This account owns a suspended organisation, so it makes no other. Ask the operator to resume that one.'

/** Returns the organisation of the calling key. */
export async function currentOrganisation(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<Organisation> {
  const organisation = await findOrganisation(ctx.db, ctx.tenant.organisationId)
  if (organisation === undefined) throw fail('organisation-not-found')
  return organisation
}

/** Renames the organisation of the calling key. */
export function renameOrganisation(
  ctx: Auditing & Pick<Ctx, 'db' | 'person' | 'tenant' | 'witness'>,
  name: string,
): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    const organisation = await lockAsCaller(ctx, tx)
    if (organisation.name === name) return organisation
    await markRenamed(tx, organisationId, name)
    const details = { from: organisation.name, to: name }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.update', target: organisationId, details },
    )
    return { ...organisation, name }
  })
}

/** Changes the organisation's plan. What exceeds the new plan's limits stays; only additions are refused. */
export function setPlan(ctx: Acting, organisationId: OrganisationId, plan: PlanName): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const organisation = await lockOrganisation(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    await markPlan(tx, organisationId, plan)
    const details = { from: organisation.plan, to: plan }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.setPlan', target: organisationId, details },
    )
    return { ...organisation, plan }
  })
}

/**
 * Suspends an organisation: from the next request on its keys and its people read only, on every process. Of an organisation that is suspended
 * already only the reason changes.
 */
export function suspendOrganisation(
  ctx: Acting,
  organisationId: OrganisationId,
  suspensionReason: string,
): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const organisation = await lockOrganisation(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    tx.beforeReturn(ctx.witness.cover)
    const suspension = { suspendedAt: organisation.suspendedAt ?? ctx.clock.now(), suspensionReason }
    await markSuspended(tx, organisationId, suspension)
    const entry = { action: 'organisations.suspend', target: organisationId, details: { reason: suspensionReason } }
    await auditIn(ctx, tx, { organisationId, environment: null }, entry)
    return { ...organisation, ...suspension }
  })
}

/** Ends the suspension of an organisation. Nothing changes for one that is not suspended. */
export function resumeOrganisation(ctx: Acting, organisationId: OrganisationId): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const organisation = await lockOrganisation(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    if (organisation.suspendedAt === null) return organisation
    await markResumed(tx, organisationId)
    const details = { suspendedAt: organisation.suspendedAt.toISOString() }
    const entry = { action: 'organisations.resume', target: organisationId, details }
    await auditIn(ctx, tx, { organisationId, environment: null }, entry)
    return { ...organisation, suspendedAt: null, suspensionReason: null }
  })
}
