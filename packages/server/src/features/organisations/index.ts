import { bindOperations } from '../../platform/operation.ts'
import { createKeyDirectory } from './key-directory.ts'
import type { Deps } from './ports.ts'
import { organisationOperations } from './routes.ts'

export type { Acting } from './api-keys.ts'
export {
  callersAccount,
  createKeyAsOperator,
  listKeysAsOperator,
  revokeAllKeysAsOperator,
  revokeKeyAsOperator,
} from './api-keys.ts'
export { readOperatorLog, verifyAuditLog } from './audit-log.ts'
export { restoreOrganisation } from './deletion.ts'
export { fail as failOrganisation } from './errors.ts'
export { createKeyDirectory } from './key-directory.ts'
export { acceptInvitation, declineInvitation, setRoleAsOperator } from './members.ts'
export { foundOrganisation, resumeOrganisation, setPlan, suspendOrganisation } from './organisations.ts'
export type { Deps as OrganisationDeps } from './ports.ts'
export { organisationOperations } from './routes.ts'
export { Email, type NewApiKey, OrganisationType, Role, Scopes } from './schema.ts'
export {
  listInvitationsTo,
  listOrganisationIds,
  listOrganisations,
  listOrganisationsOf,
  upsertAccount,
} from './store.ts'

/** Builds the feature; `api.keys` finds the callers of requests. */
export function createOrganisations(deps: Deps) {
  return { api: { keys: createKeyDirectory(deps) }, operations: bindOperations(deps, organisationOperations) }
}
