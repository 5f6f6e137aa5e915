import type { Recurring } from '../../platform/job.ts'
import { markRevoked } from './store.ts'

const most = 500

/**
 * Revokes the sessions of payments that failed or lapsed: their token's hash is forgotten. They open nothing from the moment that
 * the payment ended, since every look asks for its status; this makes it last. Revoking what is revoked changes nothing.
 */
const revokeUnpaid: Recurring = {
  name: 'sessions.revoke-unpaid',
  everyMs: 30_000,
  run: async ({ db, clock }) => {
    while ((await markRevoked(db, clock.now(), most)) === most);
  },
}

export const sessionRecurring: readonly Recurring[] = [revokeUnpaid]
