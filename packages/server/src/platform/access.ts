import type { Caller, Ctx, Person } from './ctx.ts'
import { failPlatform } from './errors.ts'
import { type Role, roles, type Scope } from './roles.ts'

/** The permissions that an operation requires of its caller. */
export interface Needs {
  /** The lowest role that may call it; `person` for what everybody who is signed in may do, a member of an organisation or not. */
  readonly role: Role | 'person'
  readonly scope: Scope
  /** The scope of the right that the result gives to somebody else. A key needs it too, so that it gives nobody what it has not. */
  readonly gives?: Scope
  /** A person must have signed in within the last ten minutes. */
  readonly fresh?: true
}

/** How long after a sign-in a person may do what needs fresh authentication. */
export const freshMs = 600_000

export type Verdict =
  | 'yes'
  | 'role-not-allowed'
  | 'scope-not-allowed'
  | 'organisation-suspended'
  | 'fresh-authentication-required'

/** The members of an operation that decide who may call it (`platform/operation.ts`). */
interface Called {
  readonly needs: Needs
  readonly method: string
  readonly whileSuspended?: true
}

/**
 * Whether a caller may call an operation. Roles bind people; scopes bind an API key that has some; a guest was admitted by the operation
 * itself, to the one thing that the guest's token opens. A suspended organisation binds its keys and its people alike.
 */
export function mayDo(
  { person, scopes: allowed, isSuspended }: Pick<Caller, 'person' | 'scopes' | 'isSuspended'>,
  { needs, method, whileSuspended }: Called,
  now: Date,
): Verdict {
  if (missingScope(allowed, needs) !== undefined) return 'scope-not-allowed'
  if (person !== undefined && !hasRole(person, needs.role)) return 'role-not-allowed'
  if (isSuspended === true && method !== 'GET' && whileSuspended !== true) return 'organisation-suspended'
  if (person === undefined) return 'yes'
  return needs.fresh === true && !isFresh(person, now) ? 'fresh-authentication-required' : 'yes'
}

/** The first scope that a key with these scopes would need besides; undefined where it needs none, and for a key with all scopes. */
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
