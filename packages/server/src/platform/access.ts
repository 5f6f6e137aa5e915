import type { Caller, Ctx, Person } from './ctx.ts'
import { failPlatform } from './errors.ts'
import { type Role, roles, type Scope } from './roles.ts'

/** The permissions that an operation requires of its caller. */
export interface Needs {
  /** The lowest role that may call it; `person` for every signed-in person, whether or not a member of an organisation. */
  readonly role: Role | 'person'
  readonly scope: Scope
  /** The scope of the access that the result grants to others. A key needs it too, so that it cannot grant more than it has. */
  readonly gives?: Scope
  /** A person must have signed in within the last ten minutes. */
  readonly fresh?: true
}

/** Milliseconds after a sign-in in which a person may do what needs fresh authentication. */
export const freshMs = 600_000

export type AccessDecision =
  | 'allowed'
  | 'role-not-allowed'
  | 'scope-not-allowed'
  | 'organisation-suspended'
  | 'fresh-authentication-required'

/** The members of an operation that decide who may call it (`platform/operation.ts`). */
interface OperationAccess {
  readonly needs: Needs
  readonly method: string
  readonly whileSuspended?: true
}

/**
 * Returns whether a caller may call an operation, or why not. Roles limit people, and scopes limit API keys. A guest was already limited by the operation, to the
 * resource of the guest's token. Suspension limits keys and people alike.
 */
export function authorize(
  { person, scopes: allowed, isSuspended }: Pick<Caller, 'person' | 'scopes' | 'isSuspended'>,
  { needs, method, whileSuspended }: OperationAccess,
  now: Date,
): AccessDecision {
  if (missingScope(allowed, needs) !== undefined) return 'scope-not-allowed'
  if (person !== undefined && !hasRole(person, needs.role)) return 'role-not-allowed'
  if (isSuspended === true && method !== 'GET' && whileSuspended !== true) return 'organisation-suspended'
  if (person === undefined) return 'allowed'
  return needs.fresh === true && !isFresh(person, now) ? 'fresh-authentication-required' : 'allowed'
}

/** The first scope that a key with these scopes lacks; undefined if none is missing, and for a key with all scopes. */
export function missingScope(allowed: readonly Scope[] | undefined, { scope, gives }: Needs): Scope | undefined {
  return [scope, gives].find((needed) => needed !== undefined && allowed?.includes(needed) === false)
}

/** Whether a person has a role or one above it. */
function hasRole({ role }: Pick<Person, 'role'>, least: Needs['role']): boolean {
  if (least === 'person') return true
  return role !== undefined && roles.indexOf(role) <= roles.indexOf(least)
}

function isFresh({ authenticatedAt }: Person, now: Date): boolean {
  return now.getTime() - authenticatedAt.getTime() < freshMs
}

/** For what needs fresh authentication in some cases only: throws 403 for a person who signed in longer ago. */
export function requireFresh({ person, clock }: Pick<Ctx, 'person' | 'clock'>): void {
  if (person !== undefined && !isFresh(person, clock.now())) throw failPlatform('fresh-authentication-required')
}
