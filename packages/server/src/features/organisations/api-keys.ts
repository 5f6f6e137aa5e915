import { createHash } from 'node:crypto'
import { composeApiKey } from '@purser/protocol'
import type { z } from 'zod'
import { requireFresh } from '../../platform/access.ts'
import type { Auditing } from '../../platform/audit.ts'
import { type AuditEntry, appendAudit } from '../../platform/audit.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Queryable, Tx } from '../../platform/db/db.ts'
import { failPlatform } from '../../platform/errors.ts'
import { unauthorized } from '../../platform/http/authenticate.ts'
import { type ApiKeyId, newId, type OrganisationId } from '../../platform/ids.ts'
import { type Page, Reply } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import type { Witness } from '../../platform/witness/witness.ts'
import { refuseEndedCaller } from '../callers/index.ts'
import { fail } from './errors.ts'
import {
  type ApiKeyRow,
  countValidKeys,
  findApiKey,
  findOrganisationOfKey,
  hadLiveKey,
  insertApiKey,
  type KeyReach,
  listApiKeys,
  listKeysMadeBy,
  listValidKeys,
  lockMaker,
  markRevoked,
  type StoredApiKey,
} from './key-store.ts'
import { deleteInvitationsBy, findFirstOwner, findMember, type InvitedBy } from './member-store.ts'
import type { Ctx } from './ports.ts'
import type { KeyRequest, NewApiKey, RevokedKey } from './schema.ts'
import {
  type AccountRow,
  findAccount,
  findKeyCreator,
  findOrganisation,
  lockOrganisation,
  type OrganisationRow,
} from './store.ts'

/** Most valid keys of an organisation in one environment. */
const keysMax = 50
/** Longest chain of keys that created one another. A rotation each hour that revokes the old key within a week stays below it. */
const makersMax = 200
/** A key that was revoked longer ago is left out of the chain of new keys. */
const makersKeptMs = 7 * 24 * 3_600_000

/** The scopes of a key, null for all, and its expiry. */
type KeyLimits = Pick<StoredApiKey, 'scopes' | 'expiresAt'>
export interface Limits extends KeyLimits {
  /** The chain of keys that created this one, the direct creator last; empty if a person or the operator creates it. */
  readonly makers: readonly ApiKeyId[]
}

type KeyToMake = Pick<StoredApiKey, 'name' | 'environment' | 'createdBy'> & Partial<Limits>

/**
 * Creates a key of 256 random bits and stores only its hash, so that reading the database grants no access. Only this response contains its text. The
 * caller has locked the organisation.
 */
export async function makeApiKey(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  { name, environment, createdBy, scopes = null, expiresAt = null, makers = [] }: KeyToMake,
): Promise<NewApiKey> {
  const createdAt = ctx.clock.now()
  if ((await countValidKeys(tx, { organisationId, environment }, createdAt)) >= keysMax)
    throw fail('api-key-limit-reached')
  const key = composeApiKey(environment, ctx.random.bytes(32))
  const keyHash = createHash('sha256').update(key).digest()
  const made = { id: newId('key', ctx), name, environment, scopes, expiresAt, createdAt }
  await insertApiKey(tx, organisationId, { ...made, keyHash, last4: key.slice(-4), createdBy, makers })
  const details = { name, environment, createdBy, scopes, expiresAt: expiresAt?.toISOString() ?? null }
  await auditIn(
    ctx,
    tx,
    { organisationId, environment },
    {
      action: 'organisations.apiKeys.create',
      target: made.id,
      details,
    },
  )
  return { ...made, scopes: scopes === null ? null : [...scopes], key, madeBy: makers.at(-1) ?? null }
}

/** Creates a key for the caller's organisation. A key creates only keys of its own environment, with scopes and expiry within its own. */
export function createApiKey(ctx: Ctx, request: KeyRequest): Promise<NewApiKey> {
  return ctx.db.tx(async (tx) => {
    refuseEnvironment(ctx, request.environment)
    await lockAsCaller(ctx, tx)
    await refuseFirstLive(ctx, tx, request.environment)
    const { id: createdBy } = await callersAccount(ctx, tx)
    const { name, environment } = request
    return makeApiKey(ctx, tx, ctx.tenant.organisationId, {
      name,
      environment,
      createdBy,
      ...(await limitsOf(ctx, tx, request)),
    })
  })
}

/**
 * The limits of a key that the caller creates: those of the request; an omitted one is inherited from the calling key. Throws 403 for wider limits
 * than the calling key's, and 401 for a key that was revoked meanwhile.
 */
export async function limitsOf(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'tenant'>,
  tx: Tx,
  { scopes, expiresAt }: Partial<Pick<KeyRequest, 'scopes' | 'expiresAt'>>,
): Promise<Limits> {
  const now = ctx.clock.now()
  if (expiresAt instanceof Date && expiresAt <= now)
    throw failPlatform('validation-error', { errors: [{ path: '/expiresAt', message: 'must be in the future' }] })
  if (ctx.actor.kind !== 'api-key') return { scopes: scopes ?? null, expiresAt: expiresAt ?? null, makers: [] }
  const { apiKeyId } = ctx.actor
  const forgottenBefore = instantOf(now.getTime() - makersKeptMs)
  const maker = await lockMaker(tx, ctx.tenant, { apiKeyId, now, forgottenBefore })
  if (maker === undefined) throw unauthorized('the key is unknown, revoked or expired')
  const isWider = scopes?.some((scope) => maker.scopes?.includes(scope) === false) === true
  const isLonger = maker.expiresAt !== null && expiresAt instanceof Date && expiresAt > maker.expiresAt
  if (isWider || isLonger || maker.makers.length > makersMax) throw fail('key-not-narrower')
  return { scopes: scopes ?? maker.scopes, expiresAt: expiresAt ?? maker.expiresAt, makers: maker.makers }
}

/** A person makes keys of either environment, and live keys with fresh authentication. */
function refuseEnvironment(
  { person, tenant, environments, clock }: Pick<Ctx, 'clock' | 'environments' | 'person' | 'tenant'>,
  environment: Environment,
): void {
  if (person === undefined && tenant.environment !== environment) throw fail('environment-not-allowed')
  if (environment === 'test') return
  if (!environments.includes(environment)) throw failPlatform('environment-not-served')
  requireFresh({ person, clock })
}

/** Of people, only an owner makes the first live key of an organisation: it lets the organisation move real money. The caller has locked the organisation. */
async function refuseFirstLive(
  { person, tenant }: Pick<Ctx, 'person' | 'tenant'>,
  tx: Tx,
  environment: Environment,
): Promise<void> {
  if (environment === 'test' || person === undefined || person.role === 'owner') return
  if (!(await hadLiveKey(tx, tenant.organisationId)))
    throw failPlatform('role-not-allowed', { detail: 'Only an owner creates the first live key of an organisation.' })
}

/** Creates a key for an organisation as the operator; it counts as created by the owner who joined first. */
export function createKeyAsOperator(
  ctx: Acting,
  organisationId: OrganisationId,
  request: Pick<KeyToMake, 'name' | 'environment' | 'scopes' | 'expiresAt'>,
): Promise<NewApiKey> {
  return ctx.db.tx(async (tx) => {
    if ((await lockOrganisation(tx, organisationId)) === undefined) throw fail('organisation-not-found')
    const owner = await findFirstOwner(tx, organisationId)
    if (owner === undefined) throw new Error('an organisation has no owner')
    return makeApiKey(ctx, tx, organisationId, { ...request, createdBy: owner.accountId })
  })
}

/** Returns the newest keys of an organisation for the operator, including revoked ones. */
export async function listKeysAsOperator(
  { db }: Pick<Acting, 'db'>,
  organisationId: OrganisationId,
  limit: number,
): Promise<ApiKeyRow[]> {
  if ((await findOrganisation(db, organisationId)) === undefined) throw fail('organisation-not-found')
  const { rows } = await listApiKeys(db, { organisationId }, { limit, after: undefined })
  return rows.slice(0, limit)
}

export async function listKeys(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<ApiKeyRow>> {
  const { limit } = query
  const keys = await listApiKeys(ctx.db, ctx.tenant, { limit, after: openCursor(query.cursor) })
  return pageOf(keys, limit, (key) => key.id)
}

/**
 * Revokes a key permanently. Every request reads its key's row, so once this has committed no process accepts it; it returns when the witness covers it,
 * so that a database that loses it is detected. Returns the valid keys that it made in
 * organisations of the same account, directly or through others, and revokes them too with `cascade`; undefined if there are none. Invitations that
 * nobody has accepted end with the key that made them. Waits for a key that is being created by this key. Revoking a revoked key again changes only
 * what `cascade` does.
 */
export function revokeApiKey(
  ctx: Auditing & Pick<Ctx, 'db' | 'person' | 'tenant' | 'witness'>,
  apiKeyId: ApiKeyId,
  { cascade }: Cascade,
): Promise<Reply | undefined> {
  return ctx.db.tx(async (tx) => {
    await lockAsCaller(ctx, tx)
    const response = await revokeIn(ctx, tx, {
      reach: ctx.tenant,
      apiKeyId,
      cascade,
      revoker: ctx.tenant.organisationId,
    })
    return response.ended.length === 0 && response.stillValid.length === 0 ? undefined : new Reply(200, response)
  })
}

/** Revokes a key of any organisation as the operator, and with `cascade` keys in any. Otherwise as `revokeApiKey`. */
export function revokeKeyAsOperator(ctx: Acting, apiKeyId: ApiKeyId, { cascade }: Cascade): Promise<RevokedKey> {
  return ctx.db.tx(async (tx) => {
    const organisationId = await findOrganisationOfKey(tx, apiKeyId)
    if (organisationId === undefined) throw fail('api-key-not-found')
    await lockOrganisation(tx, organisationId)
    return revokeIn(ctx, tx, { reach: { organisationId }, apiKeyId, cascade, revoker: undefined })
  })
}

/** Revokes all valid keys of an organisation as the operator, and returns them. People who are members can still sign in. */
export function revokeAllKeysAsOperator(ctx: Acting, organisationId: OrganisationId): Promise<ApiKeyRow[]> {
  return ctx.db.tx(async (tx) => {
    if ((await lockOrganisation(tx, organisationId)) === undefined) throw fail('organisation-not-found')
    tx.beforeReturn(ctx.witness.cover)
    const valid = await listValidKeys(tx, organisationId, ctx.clock.now())
    return endKeys(ctx, tx, organisationId, { keys: valid })
  })
}

interface Cascade {
  readonly cascade: boolean
}

interface Revocation extends Cascade {
  readonly reach: KeyReach
  readonly apiKeyId: ApiKeyId
  /** Limits the cascade to the organisations of its account; undefined for the operator. */
  readonly revoker: OrganisationId | undefined
}

async function revokeIn(ctx: Acting, tx: Tx, { reach, apiKeyId, cascade, revoker }: Revocation): Promise<RevokedKey> {
  const key = await findApiKey(tx, reach, apiKeyId)
  if (key === undefined) throw fail('api-key-not-found')
  // First, so that an organisation that the key is creating meanwhile is found.
  if (key.revokedAt === null) await endKeys(ctx, tx, reach.organisationId, { keys: [key], cause: apiKeyId })
  const rows = await listKeysMadeBy(tx, { apiKeyId, now: ctx.clock.now(), revoker })
  const made = rows.map(({ organisationId: _, ...row }) => row)
  const isRepetition = key.revokedAt !== null && !(cascade && made.length > 0)
  tx.beforeReturn(isRepetition ? ctx.witness.coverRepetition : ctx.witness.cover)
  if (!cascade) return { ended: [], stillValid: made }
  // A key creates organisations after its own, so all cascades lock them in the same order.
  const others = [...Map.groupBy(rows, ({ organisationId }) => organisationId)].sort(([one], [other]) =>
    one < other ? -1 : 1,
  )
  for (const [organisationId, keys] of others) {
    if (organisationId !== reach.organisationId) await lockOrganisation(tx, organisationId)
    await endKeys(ctx, tx, organisationId, { keys, cause: apiKeyId })
  }
  const revokedAt = ctx.clock.now()
  return { ended: made.map((row) => ({ ...row, revokedAt })), stillValid: [] }
}

/** Revokes these keys and ends their invitations. Returns the keys as they are now. */
export async function endKeys(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  { keys, cause }: { readonly keys: readonly ApiKeyRow[]; readonly cause?: ApiKeyId },
): Promise<ApiKeyRow[]> {
  const revokedAt = ctx.clock.now()
  const ids = keys.map(({ id }) => id)
  await markRevoked(tx, { organisationId }, ids, revokedAt)
  for (const { id, name, environment } of keys) {
    const details = cause === undefined || id === cause ? { name } : { name, with: cause }
    await auditIn(
      ctx,
      tx,
      { organisationId, environment },
      {
        action: 'organisations.apiKeys.revoke',
        target: id,
        details,
      },
    )
  }
  await endInvitations(ctx, tx, organisationId, { apiKeyIds: ids })
  return keys.map((key) => ({ ...key, revokedAt }))
}

/** Ends invitations that nobody has accepted, since a person who revokes a key or removes a member would not look for them. */
export async function endInvitations(
  ctx: Acting,
  tx: Tx,
  organisationId: OrganisationId,
  by: InvitedBy,
): Promise<void> {
  const cause = 'apiKeyIds' in by ? by.apiKeyIds : by.accountId
  for (const target of await deleteInvitationsBy(tx, organisationId, by))
    await auditIn(
      ctx,
      tx,
      { organisationId, environment: null },
      { action: 'organisations.members.remove', target, details: { with: cause } },
    )
}

/** Locks the caller's organisation, and refuses a caller who lost access, or got another role, after the call began: its body may take a minute. */
export async function lockAsCaller(ctx: Pick<Ctx, 'actor' | 'person' | 'tenant'>, tx: Tx): Promise<OrganisationRow> {
  const organisation = await lockOrganisation(tx, ctx.tenant.organisationId)
  if (organisation === undefined) throw fail('organisation-not-found')
  await refuseChanged(ctx, tx)
  return organisation
}

/** The caller has locked the organisation. */
export async function refuseChanged(ctx: Pick<Ctx, 'actor' | 'person' | 'tenant'>, tx: Tx): Promise<void> {
  const { person, tenant } = ctx
  await refuseEndedCaller(ctx, tx, 'viewer')
  if (person === undefined) return
  const known = await findMember(tx, tenant.organisationId, person.accountId)
  if (known?.role !== person.role || known?.status !== 'active') throw failPlatform('role-not-allowed')
}

/** Returns the account behind the call: the person, or the account that created the API key. Keys that a key creates belong to that account too. */
export async function callersAccount(ctx: Pick<Ctx, 'actor' | 'tenant'>, db: Queryable): Promise<AccountRow> {
  const account = await findCaller(ctx, db)
  if (account === undefined) throw new Error('the caller has no account')
  return account
}

function findCaller({ actor, tenant }: Pick<Ctx, 'actor' | 'tenant'>, db: Queryable): Promise<AccountRow | undefined> {
  if (actor.kind === 'person') return findAccount(db, actor.accountId)
  if (actor.kind === 'api-key') return findKeyCreator(db, tenant.organisationId, actor.apiKeyId)
  throw new Error('only a person or an API key has an account')
}

/** Dependencies of a change of an organisation, whether an API key or the operator requests it. */
export interface Acting extends Auditing, Pick<Ctx, 'db'> {
  readonly witness: Pick<Witness, 'cover' | 'coverRepetition'>
}

/**
 * Writes to the log of the organisation that is changed, which is not always the caller's. A record about the organisation as a
 * whole has no environment.
 */
export function auditIn(
  { clock, random, actor, requestId }: Acting,
  tx: Tx,
  tenant: { readonly organisationId: OrganisationId; readonly environment: Environment | null },
  entry: AuditEntry,
): void {
  appendAudit({ clock, random, actor, requestId, tenant }, tx, entry)
}
