import { type Network, networkByName } from '@purser/protocol'
import type { Tx } from '../../platform/db/db.ts'
import type { PaymentId } from '../../platform/ids.ts'
import { changeCounters, dayOf, type GasChange, monthOf } from '../plans/index.ts'
import { addGasUsed, type EndedRow, type UsedRow } from './outcome-store.ts'

/**
 * Counts payments anew that the caller's transaction has just ended: one that ended without money leaves the count of its month, and one that
 * was void and has paid after all comes back to it. Exactly once, because a row is among `ended` only in the transaction that changed its status.
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

/** What an attempt to settle a payment used, in billionths of a US dollar. */
export interface UsedGas {
  readonly paymentId: PaymentId
  readonly nanoUsd: bigint
}

/**
 * Charges payments with what one attempt to settle them really used, whatever became of it; returns how their budgets change. The caller's
 * transaction must be the one that marks the attempt as over, so that it is charged once.
 */
export async function chargeGas(tx: Tx, attempts: readonly UsedGas[]): Promise<readonly GasChange[]> {
  const used = attempts.filter(({ nanoUsd }) => nanoUsd > 0n)
  if (used.length === 0) return []
  return (await addGasUsed(tx, used)).map((row) => gasChange(row, row.nanoUsd))
}

/** Of the budget of the day on which the payment was verified, in which its reservation is as well. */
export function gasChange(row: UsedRow, nanoUsd: bigint): GasChange {
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
