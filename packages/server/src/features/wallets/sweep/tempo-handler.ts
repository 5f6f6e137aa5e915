import { decodeTransferLog, sameAddress } from '@purser/protocol'
import type { LaneHandler, LaneTransaction, Receipt } from '../../../chain/port.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import type { Deps } from '../ports.ts'
import { type End, failedTransfer, recordEnded } from './outcome.ts'
import { listInTransactions, markHash } from './tempo-store.ts'
import type { TransferRow } from './transfer-store.ts'

/** Name of these transactions in the children's lanes. */
export const tempoSweepPurpose = 'wallets.sweep-on-tempo'

/**
 * Handler of a child's lane on Tempo for the transaction of its sweep, inside the database transaction that marks the step. The transaction
 * carries nothing else, so its outcome is the outcome of the transfer; the token's log shows whether the money moved.
 */
export function tempoSweepHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: tempoSweepPurpose,
    async onSent(tx, transactions) {
      for (const { id, hash } of transactions) await markHash(tx, id, hash)
    },
    async onReplaced(tx, transactions) {
      const transfers = await listInTransactions(tx, idsOf(transactions))
      await recordEnded(
        ctx,
        tx,
        transfers.map((transfer) => failedTransfer(transfer, 'nonce-used-elsewhere')),
      )
    },
    async onFinal(tx, mined) {
      const receipts = new Map<string, Receipt>(mined.map(({ transaction, receipt }) => [transaction.id, receipt]))
      const transfers = await listInTransactions(tx, idsOf(mined.map(({ transaction }) => transaction)))
      const ends = transfers.flatMap((transfer) => {
        const receipt = receipts.get(transfer.chainTransactionId)
        return receipt === undefined ? [] : [endOf(transfer, receipt)]
      })
      await recordEnded(ctx, tx, ends)
    },
  }
}

function idsOf(transactions: readonly LaneTransaction[]): readonly string[] {
  return transactions.map(({ id }) => id)
}

function endOf(transfer: TransferRow, receipt: Receipt): End {
  const { sweepId, childAddressId } = transfer
  const wei = receipt.gasUsed * receipt.effectiveGasPrice
  const reason = faultOf(transfer, receipt)
  if (reason !== undefined) return { ...failedTransfer(transfer, reason), wei }
  return { sweepId, childAddressId, status: 'swept', txHash: receipt.transactionHash, reason: null, wei }
}

/** Why the money is not at the master according to the block; undefined if it is. */
export function faultOf(
  transfer: Pick<TransferRow, 'asset' | 'fromAddress' | 'toAddress' | 'rawAmount'>,
  receipt: Pick<Receipt, 'status' | 'logs'>,
): 'transfer-failed' | 'not-received' | undefined {
  const { asset, fromAddress, toAddress, rawAmount } = transfer
  if (receipt.status !== 'success') return 'transfer-failed'
  const isMoved = receipt.logs.some((log) => {
    const moved = sameAddress(log.address, asset) ? decodeTransferLog(log) : undefined
    if (moved === undefined || moved.value !== rawAmount) return false
    return sameAddress(moved.from, fromAddress) && sameAddress(moved.to, toAddress)
  })
  return isMoved ? undefined : 'not-received'
}
