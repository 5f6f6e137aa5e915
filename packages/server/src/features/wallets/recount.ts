import type { Recount } from '../plans/index.ts'
import { countByoWallets } from './store.ts'

/** How many wallets a tenant has registered, for rebuilding the counter. */
export const byoWalletRecount: Recount = { kind: 'byoWallets', count: (db, tenant) => countByoWallets(db, tenant) }
