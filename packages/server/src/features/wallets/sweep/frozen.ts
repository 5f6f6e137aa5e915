import type { Tx } from '../../../platform/db/db.ts'
import { listFrozenAmounts } from './frozen-store.ts'
import type { TransferRow } from './transfer-store.ts'

/**
 * Those transfers whose child had money frozen since the sweep was requested. The sweep takes the whole free balance, so money frozen
 * afterwards may be part of it: the transfer ends, and the next sweep takes the free balance.
 */
export async function frozenOnes<Row extends TransferRow>(
  tx: Tx,
  transfers: readonly Row[],
): Promise<ReadonlySet<Row>> {
  const groups = Map.groupBy(transfers, (one) => `${one.organisationId}/${one.environment}/${one.network}/${one.asset}`)
  const found = new Set<Row>()
  for (const group of groups.values()) {
    const first = group[0]
    if (first === undefined) continue
    const { organisationId, environment, network, asset } = first
    const walletIds = group.map((transfer) => transfer.childAddressId)
    const frozen = await listFrozenAmounts(tx, { organisationId, environment }, { network, asset, walletIds })
    for (const transfer of group) {
      if ((frozen.get(transfer.childAddressId) ?? 0n) > transfer.frozenRawAmount) found.add(transfer)
    }
  }
  return found
}
