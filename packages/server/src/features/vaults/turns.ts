import type { Tenant } from '../../platform/ctx.ts'
import type { Turn } from '../../platform/turns.ts'

/** One writes and the next is at the lock already when it has. */
const writersMax = 2

/** For whoever locks the counters of a tenant's vaults: a tenant with many writers leaves half of the connections to the others. */
export function tenantTurns({ organisationId, environment }: Tenant): readonly Turn[] {
  return [{ name: `vaults:${organisationId}/${environment}`, widthMax: 'half' }]
}

/** For whoever locks a vault: however many write to one vault at once, two connections wait for its row. */
export function vaultTurns(tenant: Tenant, vaultId: string | undefined): readonly Turn[] {
  const { organisationId, environment } = tenant
  return [{ name: `vault:${organisationId}/${environment}/${vaultId}`, widthMax: writersMax }, ...tenantTurns(tenant)]
}

/** The same for an operation whose path names the vault as `id`. */
export function ofVault(tenant: Tenant, { id }: Readonly<Record<string, string>>): readonly Turn[] {
  return vaultTurns(tenant, id)
}
