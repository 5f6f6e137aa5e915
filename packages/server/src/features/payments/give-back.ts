import { type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { changeCounters, changeGas, dayOf, type GasChange, monthOf } from '../plans/index.ts'
import { addGasUsed, type EndedRow, type UsedRow } from './outcome-store.ts'

/**
 * Counts payments anew that the caller's transaction has just ended: one that ended without money leaves the count of its month, one
 * that was void and has paid after all comes back to it, and each gives back the gas that no attempt of it needs any more. Exactly once,
 * because a row is among `ended` only in the transaction that changed its status.
 */
export async function countEnded(tx: Tx, ended: readonly EndedRow[]): Promise<void> {
  await changeCounters(
    tx,
    ended.map((row) => ({ tenant: tenantOf(row), kind: 'payments', period: monthOf(row.createdAt), n: changeOf(row) })),
  )
  await changeGas(
    tx,
    ended.map((row) => gasChange(row, -row.gasReservedNanoUsd)),
  )
}

function changeOf({ status, previousStatus }: EndedRow): number {
  if (status !== 'settled') return -1
  return previousStatus === 'voided' || previousStatus === 'settlement_failed' ? 1 : 0
}

/**
 * Charges payments with what one attempt to settle them really used, in wei, whatever became of it. The caller's transaction must be the one that
 * marks the attempt as over, so that it is charged once.
 */
export async function chargeGas(
  { gasPrices }: Pick<Ctx, 'gasPrices'>,
  tx: Tx,
  network: string,
  attempts: readonly { readonly paymentId: PaymentId; readonly weiUsed: bigint }[],
): Promise<void> {
  const used = attempts
    .map(({ paymentId, weiUsed }) => ({ paymentId, nanoUsd: gasPrices.worthOf(networkOf(network), weiUsed) }))
    .filter(({ nanoUsd }) => nanoUsd > 0n)
  if (used.length === 0) return
  const charged = await addGasUsed(tx, used)
  await changeGas(
    tx,
    charged.map((row) => gasChange(row, row.nanoUsd)),
  )
}

/** Of the budget of the day on which the payment was verified, in which its reservation is as well. */
function gasChange(row: UsedRow, nanoUsd: bigint): GasChange {
  return { tenant: tenantOf(row), network: row.network, day: dayOf(row.createdAt), nanoUsd }
}

function tenantOf({ organisationId, environment }: UsedRow) {
  return { organisationId, environment }
}

/** What a transaction took from whoever sent it, in wei. */
export function costOfReceipt(receipt: {
  readonly gasUsed: bigint
  readonly effectiveGasPrice: bigint
  readonly l1Fee: bigint
}): bigint {
  return receipt.gasUsed * receipt.effectiveGasPrice + receipt.l1Fee
}

/** The network of a stored payment. */
export function networkOf(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a payment is on ${name}, which this build does not know`)
  return network
}
