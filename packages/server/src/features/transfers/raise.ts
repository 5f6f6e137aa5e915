import { requireNetwork, tokenBySymbol } from '@purser/protocol'
import type { LaneTransaction } from '../../chain/port.ts'
import type { Tx } from '../../platform/db/db.ts'
import { areCovered, feeInToken, lockOwners } from '../funds/index.ts'
import type { Ctx } from './ports.ts'
import { listStepsOf } from './store.ts'

/**
 * Whether a wallet on a network without a native coin can pay a fee that is higher by `more` (1e-18 US dollars) for a waiting step, from its
 * available balance. The returned function decides under the lock of the wallet's funds, in the transaction that stores the new bytes.
 */
export async function coverRaise(
  ctx: Omit<Ctx, 'tenant'>,
  { id, network: name }: LaneTransaction,
  more: bigint,
): Promise<(tx: Tx) => Promise<boolean>> {
  const network = requireNetwork(name)
  const [found] = await listStepsOf(ctx.db, [id])
  const coin = found === undefined ? undefined : tokenBySymbol(network, found.transfer.fromToken)
  if (found === undefined || coin === undefined) throw new Error('a transaction without a transfer of a token')
  const { organisationId, environment, walletId } = found.transfer
  const owner = found.step.sender
  const place = { tenant: { organisationId, environment }, network, walletId, owner, coin }
  const { snapshot } = await ctx.readFunds(network, [place])
  const want = { place, rawAmount: feeInToken(more, 1n, coin.decimals), gasLimit: 0n, dataBytes: 0 }
  return async (tx) => {
    await lockOwners(tx, [{ network: network.name, owner }])
    const [isCovered] = await areCovered(ctx, tx, [{ snapshot, wants: [want] }])
    return isCovered === true
  }
}
