import type { Recount } from '../plans/index.ts'
import { countExpired, countingVaults, countUnpaid, summingBytes } from './expiry-store.ts'

/** Recounts what this feature counts. An expired vault counts until it is swept, here as in the counters. */
export const vaultRecounts: readonly Recount[] = [
  {
    kind: 'activeVaults',
    counting: (tenant) => countingVaults(tenant, 'active'),
    gone: async (db, tenant, now) =>
      (await countExpired(db, tenant, now)).vaults + (await countUnpaid(db, tenant, now)),
  },
  { kind: 'persistedVaults', counting: (tenant) => countingVaults(tenant, 'persisted') },
  {
    kind: 'storageBytes',
    counting: (tenant) => summingBytes(tenant),
    gone: async (db, tenant, now) => (await countExpired(db, tenant, now)).bytes,
  },
]
