import type { z } from 'zod'
import type { Environment } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { type AccountId, newId, type OrganisationId } from '../../platform/ids.ts'
import type { PlanName } from '../plans/index.ts'
import { type Acting, auditIn, callersAccount, type KeyLimits, limitsOf, makeApiKey } from './api-keys.ts'
import { fail } from './errors.ts'
import { insertMember } from './member-store.ts'
import type { Ctx } from './ports.ts'
import type { CreatedOrganisation, NewApiKey, NewOrganisation, Organisation, OrganisationType } from './schema.ts'
import {
  findOrganisation,
  insertOrganisation,
  lockOrganisation,
  lockOrganisationCount,
  markPlan,
  markRenamed,
} from './store.ts'

/** Most organizations of an account that it makes itself. */
const organisationsMax = 10

export interface Founding {
  readonly name: string
  readonly type: OrganisationType
  readonly plan: PlanName
  readonly ownerId: AccountId
  /** One key is created for each. */
  readonly environments: readonly Environment[]
  /** Limits of its keys, if they have some. */
  readonly limits?: KeyLimits
}

/** Creates an organization with its owner, its first keys and the first records of its audit log, all or nothing. */
export async function foundOrganisation(
  ctx: Acting,
  tx: Tx,
  founding: Founding,
): Promise<{ readonly organisation: Organisation; readonly apiKeys: readonly NewApiKey[] }> {
  const { name, type, plan, ownerId } = founding
  const organisation: Organisation = { id: newId('org', ctx), name, type, plan, createdAt: ctx.clock.now() }
  await insertOrganisation(tx, organisation, ownerId)
  const { createdAt } = organisation
  const joined = { isLive: true, createdAt, acceptedAt: createdAt, invitedEmail: null, invitedByKey: null }
  const owner = { accountId: ownerId, role: 'owner', ...joined } as const
  await insertMember(tx, organisation.id, owner)
  await auditIn(ctx, tx, organisation.id, null, {
    action: 'organisations.create',
    target: organisation.id,
    details: { name, type, plan, owner: ownerId },
  })
  const apiKeys: NewApiKey[] = []
  for (const environment of founding.environments) {
    const request = { name: `First ${environment} key`, environment, createdBy: ownerId, ...founding.limits }
    apiKeys.push(await makeApiKey(ctx, tx, organisation.id, request))
  }
  return { organisation, apiKeys }
}

/**
 * Creates an organization on the hobby plan, owned by the account behind the calling key, with one test key that only this
 * response shows. The caller's own audit log records it too, so that a stolen key that creates organizations leaves a trace.
 */
export function createOrganisation(ctx: Ctx, request: NewOrganisation): Promise<z.input<typeof CreatedOrganisation>> {
  return ctx.db.tx(async (tx) => {
    const owner = await callersAccount(ctx, tx)
    if ((await lockOrganisationCount(tx, owner.id)) >= organisationsMax) throw fail('organisation-limit-reached')
    const { scopes, expiresAt } = await limitsOf(ctx, tx, {})
    const limits = { scopes, expiresAt }
    const founding: Founding = { ...request, plan: 'hobby', ownerId: owner.id, environments: ['test'], limits }
    const { organisation, apiKeys } = await foundOrganisation(ctx, tx, founding)
    await ctx.audit(tx, { action: 'organisations.create', target: organisation.id, details: { name: request.name } })
    return { ...organisation, apiKeys: [...apiKeys] }
  })
}

/** Returns the organization of the calling key. */
export async function currentOrganisation(ctx: Ctx): Promise<Organisation> {
  const organisation = await findOrganisation(ctx.db, ctx.tenant.organisationId)
  if (organisation === undefined) throw fail('organisation-not-found')
  return organisation
}

/** Renames the organisation of the calling key. */
export function renameOrganisation(ctx: Ctx, name: string): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const { organisationId } = ctx.tenant
    const organisation = await lockOrganisation(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    await markRenamed(tx, organisationId, name)
    const details = { from: organisation.name, to: name }
    await auditIn(ctx, tx, organisationId, null, { action: 'organisations.update', target: organisationId, details })
    return { ...organisation, name }
  })
}

/** Changes the organization's plan. What exceeds the new plan's limits stays; only additions are refused. */
export function setPlan(ctx: Acting, organisationId: OrganisationId, plan: PlanName): Promise<Organisation> {
  return ctx.db.tx(async (tx) => {
    const organisation = await lockOrganisation(tx, organisationId)
    if (organisation === undefined) throw fail('organisation-not-found')
    await markPlan(tx, organisationId, plan)
    const details = { from: organisation.plan, to: plan }
    await auditIn(ctx, tx, organisationId, null, { action: 'organisations.setPlan', target: organisationId, details })
    return { ...organisation, plan }
  })
}
