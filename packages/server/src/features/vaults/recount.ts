import type { Recount } from '../plans/index.ts'
import { countVaults, sumBytes } from './lapse-store.ts'

/** What this room counts, counted from its rows: a vault that is gone counts until it is swept, here as in the counters. */
export const vaultRecounts: readonly Recount[] = [
  { kind: 'activeVaults', count: (db, tenant) => countVaults(db, tenant, 'active') },
  { kind: 'persistedVaults', count: (db, tenant) => countVaults(db, tenant, 'persisted') },
  { kind: 'storageBytes', count: (db, tenant) => sumBytes(db, tenant) },
]
