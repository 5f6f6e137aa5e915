import { type Account, createPurser, type Environment, type Purser, type Role } from '@purser/sdk'
import { createContext, use } from 'react'
import type { LiveEvents } from '../live/live-events.ts'

type Membership = Account['organisations'][number]

/** The signed-in person, and the organisation and environment in which they work. */
export interface Workspace {
  readonly purser: Purser
  readonly account: Account
  readonly organisation: Membership
  readonly environment: Environment
  readonly live: LiveEvents
}

export const WorkspaceContext = createContext<Workspace | undefined>(undefined)

/** The workspace of the page. Every page is inside one. */
export function useWorkspace(): Workspace {
  const workspace = use(WorkspaceContext)
  if (workspace === undefined) throw new Error('a page is outside the shell')
  return workspace
}

export function usePurser(): Purser {
  return useWorkspace().purser
}

const ranks: readonly Role[] = ['viewer', 'member', 'admin', 'owner']

/**
 * Whether the person has at least this role here. The service decides; the dashboard only hides buttons that it would
 * refuse.
 */
export function useMay(role: Role): boolean {
  return isAtLeast(useWorkspace().organisation.role, role)
}

/** Whether a role includes what another one may do. */
export function isAtLeast(role: Role, needed: Role): boolean {
  return ranks.indexOf(role) >= ranks.indexOf(needed)
}

/** A client for the person behind the browser's session, in one organisation and environment. */
export function sessionClient(organisationId: string | undefined, environment: Environment | undefined): Purser {
  return createPurser({
    session: { organisationId, environment },
    baseUrl: location.origin,
    retry: { delayMsFirst: 300 },
  })
}
