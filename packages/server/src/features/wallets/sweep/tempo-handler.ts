import { decodeTransferLog, sameAddress } from '@purser/protocol'
import type { LaneHandler, Receipt } from '../../../chain/port.ts'
import type { Deps } from '../../../platform/ctx.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { chargeBudgets } from '../gasless.ts'
import { networkOf, recordEnded } from './outcome.ts'
import { listInTransaction, markHash } from './tempo-store.ts'
import type { TransferRow } from './transfer-store.ts'

/** Name under which the children's lanes know these transactions. */
export const tempoSweepPurpose = 'wallets.sweep-on-tempo'

/**
 * What a child's lane on Tempo does with the transaction of its sweep, inside the database transaction that marks the step. It is the child's
 * own and carries nothing else, so what becomes of it is what becomes of the transfer; that the money moved, the token's log says.
 */
export function tempoSweepHandler(deps: Deps): LaneHandler {
  const ctx = systemCtx(deps)
  return {
    purpose: tempoSweepPurpose,
    async onSent(tx, transactions) {
      for (const { id, hash } of transactions) await markHash(tx, id, hash)
    },
    async onReplaced(tx, transactions) {
      for (const { id } of transactions)
        await recordEnded(ctx, tx, await listInTransaction(tx, id), {
          status: 'failed',
          reason: 'nonce-used-elsewhere',
        })
    },
    async onFinal(tx, mined) {
      for (const { transaction, receipt } of mined) {
        for (const transfer of await listInTransaction(tx, transaction.id)) {
          const reason = faultOf(transfer, receipt)
          const txHash = receipt.transactionHash
          const end =
            reason === undefined ? ({ status: 'swept', txHash } as const) : ({ status: 'failed', reason } as const)
          await recordEnded(ctx, tx, [transfer], end)
          const wei = receipt.gasUsed * receipt.effectiveGasPrice
          await chargeBudgets(ctx, tx, networkOf(transfer.network), [{ move: transfer, wei }])
        }
      }
    },
  }
}

/** Why a block says that the money is not at the master; undefined when it is. */
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
