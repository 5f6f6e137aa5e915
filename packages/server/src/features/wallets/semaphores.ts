import type { Tenant } from '../../platform/ctx.ts'
import type { Semaphore } from '../../platform/semaphores.ts'

/** Master wallets of one tenant are created one after another, so that they do not take accounts from each other. */
export function masterWalletSemaphores({ organisationId, environment }: Tenant): readonly Semaphore[] {
  return [{ name: `master-wallets:${organisationId}/${environment}`, widthMax: 1 }]
}

/**
 * Two at a time: one derives while the next waits for the master's lock. A tenant with many requests leaves half of the connections to
 * others.
 */
export function childAddressSemaphores(
  { organisationId, environment }: Tenant,
  { id }: Readonly<Record<string, string>>,
): readonly Semaphore[] {
  const tenant = `${organisationId}/${environment}`
  return [
    { name: `child-addresses:${tenant}/${id}`, widthMax: 2 },
    { name: `child-addresses:${tenant}`, widthMax: 'half' },
  ]
}

/** Rescans of one tenant run one after another. */
export function rescanSemaphores({ organisationId, environment }: Tenant): readonly Semaphore[] {
  return [{ name: `rescans:${organisationId}/${environment}`, widthMax: 1 }]
}

/**
 * One rescan at a time locks a network. Each tenant waits here with one at most (`rescanSemaphores`), so that tenants take turns.
 */
export function rescanTurns(network: string): readonly Semaphore[] {
  return [{ name: `rescan-turns:${network}`, widthMax: 1 }]
}
