import type { Recount } from '../plans/index.ts'
import { countMasterWallets } from './managed/store.ts'
import { countByoWallets } from './store.ts'

/** Number of wallets of a tenant, registered and managed, for rebuilding the counters. */
export const walletRecounts: readonly Recount[] = [
  { kind: 'byoWallets', count: (db, tenant) => countByoWallets(db, tenant) },
  { kind: 'managedWallets', count: (db, tenant) => countMasterWallets(db, tenant) },
]
