import { hash } from 'node:crypto'
import { type AccessDecision, authorize, missingScope } from '../access.ts'
import { type Caller, type Deps, type Environment, type Person, type Tenant, tenantOfAccount } from '../ctx.ts'
import { failPlatform, Problem } from '../errors.ts'
import { isId, type OrganisationId } from '../ids.ts'
import type { BoundOperation, GuestRequest } from '../operation.ts'
import { unstorableTexts } from '../wire.ts'
import type { FoundCredential, LookUp } from './admission.ts'
import { type Identity, unauthorized } from './authenticate.ts'
import { callerOf } from './call.ts'

/** Finds people by their session cookies. */
export interface People {
  /** The origin of the dashboard: the only one whose pages may change something with a cookie. */
  readonly origin: string
  /** The value of the session cookie among the cookies of a request, unchecked; undefined where there is none. */
  cookieOf(cookies: string | undefined): string | undefined
  /** The person behind a session cookie, with the role in the organisation that is named; undefined where the session is not good. */
  find(cookie: string, organisationId: OrganisationId | undefined): Promise<Person | undefined>
}

export interface IdentifyOptions {
  readonly deps: Deps
  readonly authenticate: (authorization: string | undefined) => Promise<Identity>
  /** Omitted if people cannot sign in. */
  readonly people?: People
}

/** Counts a request against the rate limit of its caller or, without one, of its IP address. Throws when the limit is reached. */
export interface Count {
  caller(caller: Caller): void
  address(): void
  guest(guestId: string): void
  /** Counts a look-up of a credential that is not known as valid, or of a person's session; throws before the database is read if there were too many. */
  lookup(credential: string): LookUp
  /** Records whether the credential was valid. */
  found(looked: LookUp, found: FoundCredential): void
}

export interface IdentifyRequest extends GuestRequest {
  readonly method: string
}

/**
 * The caller and its permission: a guest where the operation takes guests and the request shows one, the owner of an API key, or
 * a person with a session cookie. A request with a key and a cookie is the key's. What fails counts against the address.
 */
export async function identify(
  options: IdentifyOptions,
  operation: BoundOperation,
  request: IdentifyRequest,
  count: Count,
): Promise<Caller> {
  try {
    const caller = await findCaller(options, operation, request, count)
    const verdict = authorize(caller, operation, options.deps.clock.now())
    if (verdict !== 'allowed') throw refusalOf(verdict, operation, caller)
    return caller
  } catch (error) {
    if (!(error instanceof Problem) || !countedCodes.includes(error.code)) count.address()
    throw error
  }
}

/** Refusals of callers who were counted already. */
const countedCodes = [
  'rate-limit-exceeded',
  'role-not-allowed',
  'scope-not-allowed',
  'organisation-suspended',
  'fresh-authentication-required',
]

/**
 * Names the organisation of an API key and the owner of its share, also in refusals of the key's scopes; empty for other callers. The owner is named by
 * a digest, because it may be an account.
 */
export function organisationHeaders({ actor, tenant, shareOwner }: Caller): Readonly<Record<string, string>> {
  if (actor.kind !== 'api-key') return {}
  const share = hash('sha256', `share:${shareOwner}`, 'base64url').slice(0, 22)
  return { 'x-service-organisation': tenant.organisationId, 'x-service-share': share }
}

function refusalOf(
  verdict: Exclude<AccessDecision, 'allowed'>,
  { needs }: BoundOperation,
  { scopes }: Caller,
): Problem {
  if (verdict !== 'scope-not-allowed') return failPlatform(verdict)
  const requiredScope = missingScope(scopes, needs)
  const detail = `This needs an API key with the scope "${requiredScope}", and this key is limited to other scopes.`
  return failPlatform(verdict, { detail, requiredScope })
}

async function findCaller(
  options: IdentifyOptions,
  operation: BoundOperation,
  request: IdentifyRequest,
  count: Count,
): Promise<Caller> {
  const { people, deps } = options
  const { headers, params, query } = request
  const cookie = headers.authorization === undefined ? people?.cookieOf(headers.cookie) : undefined
  const credential = headers.authorization ?? cookie
  const looked = credential === undefined ? undefined : count.lookup(credential)
  // A ticket or a signed link is looked up whatever credential is beside it.
  const showsLink = query.ticket !== undefined || query.signature !== undefined
  if (operation.guests !== undefined && (credential === undefined || showsLink)) count.lookup('')
  const mayBeGuest = operation.guests !== undefined && unstorableTexts([params, query]).length === 0
  const guest = mayBeGuest ? await operation.guests(operation.deps, request) : undefined
  if (guest !== undefined) {
    if (guest.actor.kind === 'guest') count.guest(guest.actor.guestId)
    else count.address()
    return guest
  }
  if (people !== undefined && cookie !== undefined) {
    const find = () => findPerson(deps, people, { operation, request, cookie })
    const caller = await known(count, looked, find, ({ person }) => person.accountId)
    count.caller(caller)
    return caller
  }
  const identity = await known(count, looked, () => options.authenticate(headers.authorization))
  const caller = callerOf(identity)
  count.caller(caller)
  if (operation.organisationInPath === true && params.orgId !== identity.organisationId)
    throw unauthorized('wrong organisation')
  return caller
}

/** Remembers a credential that was found, and forgets one that was refused. */
async function known<T>(
  count: Count,
  looked: LookUp | undefined,
  find: () => Promise<T>,
  personOf?: (found: T) => string,
): Promise<T> {
  try {
    const found = await find()
    if (looked !== undefined) count.found(looked, { isValid: true, personId: personOf?.(found) })
    return found
  } catch (error) {
    if (looked !== undefined && error instanceof Problem && error.code === 'unauthorized')
      count.found(looked, { isValid: false })
    throw error
  }
}

/**
 * The person of a session cookie. An unknown organisation, one without the person as a member, and a missing header give the same response.
 */
async function findPerson(
  { environments }: Pick<Deps, 'environments'>,
  people: People,
  {
    operation,
    request: { method, headers, params },
    cookie,
  }: { readonly operation: BoundOperation; readonly request: IdentifyRequest; readonly cookie: string },
): Promise<Caller & { readonly person: Person }> {
  if (method !== 'GET') refuseOtherOrigin(people, headers.origin)
  const named = headers['x-service-organisation']
  const organisationId = named !== undefined && isId('org', named) ? named : undefined
  const person = await people.find(cookie, organisationId)
  if (person === undefined) throw unauthorized('the session has ended; sign in again')
  const actor = { kind: 'person', accountId: person.accountId } as const
  const { accountId, shareOwner } = person
  if (operation.needs.role === 'person')
    return { tenant: tenantOfAccount(accountId), actor, shareOwner: accountId, person }
  const isElsewhere = operation.organisationInPath === true && params.orgId !== organisationId
  if (organisationId === undefined || person.role === undefined || isElsewhere)
    throw failPlatform('organisation-not-found', {
      detail: 'X-Service-Organisation does not name an organisation that you are a member of.',
    })
  const environment = environmentOf(headers['x-service-environment'], environments)
  if (environment === 'live' && !person.isLive) throw failPlatform('role-not-allowed', { detail: testOnly })
  const tenant: Tenant = { organisationId, environment }
  return { tenant, actor, shareOwner, person, ...(person.isSuspended && { isSuspended: true }) }
}

const testOnly =
  'A test key invited you, so you work in the test environment alone until an owner or admin gives you a role.'

/** `test` if the request names no environment. */
function environmentOf(named: string | undefined, served: readonly Environment[]): Environment {
  const environment = served.find((known) => known === (named ?? 'test'))
  if (environment === undefined) throw failPlatform('environment-not-served')
  return environment
}

/** Browsers name the origin with every request that may change something, and pages cannot choose what they name. */
export function refuseOtherOrigin({ origin }: Pick<People, 'origin'>, named: string | undefined): void {
  if (named === origin) return
  const detail = `A request with a session cookie that changes something must have the header Origin: ${origin}.`
  throw failPlatform('origin-not-allowed', { detail })
}
