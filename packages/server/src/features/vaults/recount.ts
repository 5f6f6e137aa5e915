import type { Recount } from '../plans/index.ts'
import { countLapsed, countUnpaid, countVaults, sumBytes } from './lapse-store.ts'

/** What this room counts, counted from its rows: a vault that is gone counts until it is swept, here as in the counters. */
export const vaultRecounts: readonly Recount[] = [
  {
    kind: 'activeVaults',
    count: (db, tenant) => countVaults(db, tenant, 'active'),
    gone: async (db, tenant, now) => (await countLapsed(db, tenant, now)).vaults + (await countUnpaid(db, tenant, now)),
  },
  { kind: 'persistedVaults', count: (db, tenant) => countVaults(db, tenant, 'persisted') },
  {
    kind: 'storageBytes',
    count: (db, tenant) => sumBytes(db, tenant),
    gone: async (db, tenant, now) => (await countLapsed(db, tenant, now)).bytes,
  },
]
