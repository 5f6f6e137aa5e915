import type { Transfer } from '@purser/sdk'
import { sentenceCase } from '../../ui/format.ts'
import { Network } from '../../ui/network.tsx'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { OnChain } from '../../ui/values.tsx'
import { approvalSteps } from '../approvals/approval-step.tsx'
import { isWaiting } from './transfer-state.tsx'

/** The steps of a transfer as far as they are known, and the one that it waits for. */
export function transferSteps(transfer: Transfer): readonly TimelineStep[] {
  return [
    { key: 'created', state: 'settled', title: 'Requested', at: transfer.createdAt },
    ...approvalSteps(transfer.approval),
    sent(transfer),
    ...(transfer.destinationTxHash === null ? [] : [delivered(transfer, transfer.destinationTxHash)]),
    ...last(transfer),
    ...(transfer.refundTxHash === null ? [] : [refunded(transfer, transfer.refundTxHash)]),
  ]
}

function sent({ txHash, fromChain, status, approval }: Transfer): TimelineStep {
  if (txHash === null)
    return status === 'failed'
      ? { key: 'sent', state: 'void', title: 'No transaction was sent' }
      : isWaiting(approval)
        ? { key: 'sent', state: 'void', title: onNetwork('Then sent on', fromChain) }
        : { key: 'sent', state: 'pending', title: 'Waits for its transaction' }
  return {
    key: 'sent',
    state: 'settled',
    title: onNetwork('Sent on', fromChain),
    children: <OnChain value={txHash} network={fromChain} kind="tx" />,
  }
}

function delivered({ toChain }: Transfer, hash: string): TimelineStep {
  const children = <OnChain value={hash} network={toChain} kind="tx" />
  return { key: 'delivered', state: 'settled', title: onNetwork('Delivered on', toChain), children }
}

function last({ status, confirmedAt, reason, txHash, toChain }: Transfer): readonly TimelineStep[] {
  if (status === 'confirmed') return [{ key: 'end', state: 'settled', title: 'Arrived', at: confirmedAt }]
  if (status === 'failed')
    return [
      {
        key: 'end',
        state: 'failed',
        title: 'Failed',
        ...(reason !== null && { children: sentenceCase(reason) }),
      },
    ]
  if (txHash === null) return []
  return [{ key: 'end', state: 'pending', title: onNetwork('Waits for confirmation on', toChain) }]
}

function refunded({ fromChain, refundedAt }: Transfer, hash: string): TimelineStep {
  const children = <OnChain value={hash} network={fromChain} kind="tx" />
  return { key: 'refund', state: 'settled', title: 'The money came back', at: refundedAt, children }
}

function onNetwork(words: string, chain: string) {
  return (
    <>
      {words} <Network chain={chain} />
    </>
  )
}
