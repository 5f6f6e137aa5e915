import type { Tenant } from '../../platform/ctx.ts'
import type { Semaphore } from '../../platform/semaphores.ts'

/** One writes while the next waits for the lock. */
const writersMax = 2

/**
 * Limits work that locks the counters of a tenant's vaults: a tenant with many writers leaves half of the connections to the
 * others.
 */
export function tenantSemaphores({ organisationId, environment }: Tenant): readonly Semaphore[] {
  return [{ name: `vaults:${organisationId}/${environment}`, widthMax: 'half' }]
}

/** Limits work that locks a vault: however many write to one vault at once, two connections wait for its row. */
export function vaultSemaphores(tenant: Tenant, vaultId: string | undefined): readonly Semaphore[] {
  const { organisationId, environment } = tenant
  return [
    { name: `vault:${organisationId}/${environment}/${vaultId}`, widthMax: writersMax },
    ...tenantSemaphores(tenant),
  ]
}

/** Returns the limits for an operation whose path names the vault as `id`. */
export function ofVault(tenant: Tenant, { id }: Readonly<Record<string, string>>): readonly Semaphore[] {
  return vaultSemaphores(tenant, id)
}

/** Most documents of a tenant, and of a vault, that are being written at once: as many as one batch takes. */
export const documentsMax = 64

/** Limits the documents of a tenant that are being written. */
export function documentSemaphores({ organisationId, environment }: Tenant): readonly Semaphore[] {
  return [{ name: `documents:${organisationId}/${environment}`, widthMax: documentsMax }]
}

/** Limits concurrent document writes per vault, so that a vault that stays locked does not block writes to others. */
export function ofVaultDocuments(
  { organisationId, environment }: Tenant,
  { id }: Readonly<Record<string, string>>,
): readonly Semaphore[] {
  return [{ name: `vault-documents:${organisationId}/${environment}/${id}`, widthMax: documentsMax }]
}
