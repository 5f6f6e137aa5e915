import type { Recount } from '../plans/index.ts'
import { countExpired, countUnpaid, countVaults, sumBytes } from './expiry-store.ts'

/** Recounts what this feature counts. An expired vault counts until it is swept, here as in the counters. */
export const vaultRecounts: readonly Recount[] = [
  {
    kind: 'activeVaults',
    count: (db, tenant) => countVaults(db, tenant, 'active'),
    gone: async (db, tenant, now) =>
      (await countExpired(db, tenant, now)).vaults + (await countUnpaid(db, tenant, now)),
  },
  { kind: 'persistedVaults', count: (db, tenant) => countVaults(db, tenant, 'persisted') },
  {
    kind: 'storageBytes',
    count: (db, tenant) => sumBytes(db, tenant),
    gone: async (db, tenant, now) => (await countExpired(db, tenant, now)).bytes,
  },
]
