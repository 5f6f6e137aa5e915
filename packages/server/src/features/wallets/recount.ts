import type { Recount } from '../plans/index.ts'
import { countingChildAddresses } from './children/store.ts'
import { countingMasterWallets } from './managed/store.ts'
import { countingByoWallets } from './store.ts'

/** Number of wallets of a tenant, registered and managed, and of child addresses, for rebuilding the counters. */
export const walletRecounts: readonly Recount[] = [
  { kind: 'byoWallets', counting: (tenant) => countingByoWallets(tenant) },
  { kind: 'managedWallets', counting: (tenant) => countingMasterWallets(tenant) },
  { kind: 'childAddresses', counting: (tenant) => countingChildAddresses(tenant) },
]
