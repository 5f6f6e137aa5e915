import type { Queryable } from '../../platform/db/db.ts'
import { sumUnderSweep } from '../wallets/index.ts'
import type { TransferPlan } from './plan.ts'

/**
 * What sweeps under way take of the wallet's token on Tempo, where a transfer pays for itself: one that came behind a sweep of all there is
 * could not pay its fee, and nothing of the wallet's could go after it. Elsewhere such a call would only revert.
 */
export async function amountUnderSweep(
  db: Queryable,
  { source, network, coin }: Pick<TransferPlan, 'source' | 'network' | 'coin'>,
): Promise<bigint> {
  if (network.nativeCoin !== null || coin.address === undefined) return 0n
  return sumUnderSweep(db, { network: network.name, asset: coin.address, address: source.address })
}
