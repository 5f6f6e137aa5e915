import { type Network, networkByName } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { changeCounters, dayOf, type GasChange, monthOf } from '../plans/index.ts'
import { addGasUsed, type EndedRow, type UsedRow } from './outcome-store.ts'

/**
 * Updates the month's count for payments that the caller's transaction has just ended: one that ended without money is
 * subtracted, and one that was void and has settled after all is added again. It happens exactly once, because a row is among
 * `ended` only in the transaction that changed its status.
 */
export function countEnded(tx: Tx, ended: readonly EndedRow[]): Promise<void> {
  return changeCounters(
    tx,
    ended.map((row) => ({ tenant: tenantOf(row), kind: 'payments', period: monthOf(row.createdAt), n: changeOf(row) })),
  )
}

function changeOf({ status, previousStatus }: EndedRow): number {
  if (status !== 'settled') return -1
  return previousStatus === 'voided' || previousStatus === 'settlement_failed' ? 1 : 0
}

/** Gas that an attempt to settle a payment used, in billionths of a US dollar. */
export interface UsedGas {
  readonly paymentId: PaymentId
  readonly nanoUsd: bigint
}

/**
 * Charges payments with the gas that one attempt to settle them used, whatever its outcome; returns the changes of their budgets.
 * The caller's transaction must be the one that marks the attempt as finished, so that it is charged once.
 */
export async function chargeGas(tx: Tx, attempts: readonly UsedGas[]): Promise<readonly GasChange[]> {
  const used = attempts.filter(({ nanoUsd }) => nanoUsd > 0n)
  if (used.length === 0) return []
  return (await addGasUsed(tx, used)).map((row) => gasChange(row, row.nanoUsd))
}

/** Returns a change of the budget of the day on which the payment was verified; its reservation is in the same budget. */
export function gasChange(row: UsedRow, nanoUsd: bigint): GasChange {
  return { tenant: tenantOf(row), network: row.network, day: dayOf(row.createdAt), nanoUsd }
}

function tenantOf({ organisationId, environment }: UsedRow) {
  return { organisationId, environment }
}

/** Returns what a transaction cost its sender, in wei. */
export function costOfReceipt(receipt: {
  readonly gasUsed: bigint
  readonly effectiveGasPrice: bigint
  readonly l1Fee: bigint
}): bigint {
  return receipt.gasUsed * receipt.effectiveGasPrice + receipt.l1Fee
}

/** Returns the network of a stored payment. */
export function networkOf(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`a payment is on ${name}, which this build does not know`)
  return network
}
