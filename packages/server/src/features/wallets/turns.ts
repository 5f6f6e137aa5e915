import type { Tenant } from '../../platform/ctx.ts'
import type { Turn } from '../../platform/turns.ts'

/** Master wallets of one tenant are made one after another, so that they do not take accounts from each other. */
export function masterWalletTurns({ organisationId, environment }: Tenant): readonly Turn[] {
  return [{ name: `master-wallets:${organisationId}/${environment}`, widthMax: 1 }]
}

/** One derives and the next is at the master's lock already when it has; a tenant with many leaves half of the connections to others. */
export function childAddressTurns(
  { organisationId, environment }: Tenant,
  { id }: Readonly<Record<string, string>>,
): readonly Turn[] {
  const tenant = `${organisationId}/${environment}`
  return [
    { name: `child-addresses:${tenant}/${id}`, widthMax: 2 },
    { name: `child-addresses:${tenant}`, widthMax: 'half' },
  ]
}
