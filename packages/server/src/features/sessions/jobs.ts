import type { Recurring } from '../../platform/job.ts'
import { markOver } from '../vaults/index.ts'
import type { Ctx, Deps } from './ports.ts'
import { markRevoked } from './store.ts'

const most = 500

/**
 * Revokes the sessions of payments that failed or were voided, and ends their vaults: the hash of their token is deleted, and
 * their place in the quota is free again. They grant no access from the moment that the payment ended, since every verification
 * reads its status; this makes it permanent. Running it again changes nothing.
 */
const revokeUnpaid: Recurring<Deps> = {
  name: 'sessions.revoke-unpaid',
  everyMs: 30_000,
  run: async (ctx) => {
    while ((await revokeBatch(ctx)) === most);
  },
}

function revokeBatch({ db, clock }: Pick<Ctx, 'db' | 'clock'>): Promise<number> {
  return db.tx(async (tx) => {
    const vaultIds = await markRevoked(tx, clock.now(), most)
    await markOver(tx, vaultIds, clock.now())
    return vaultIds.length
  })
}

export const sessionRecurring: readonly Recurring<Deps>[] = [revokeUnpaid]
