import type { Payment } from '@purser/sdk'
import { groupDecimal, networkName } from '../../ui/format.ts'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { Id, OnChain } from '../../ui/values.tsx'
import { protocolNames } from './columns.tsx'
import { failureWords } from './payment-state.ts'

/** The steps of a payment that are known to have happened, and the one that it waits for. */
export function paymentSteps(payment: Payment): readonly TimelineStep[] {
  return [verified(payment), ...onTheWay(payment), ...ended(payment), ...afterwards(payment)]
}

function verified({ payer, protocol, chain, createdAt, status }: Payment): TimelineStep {
  return {
    key: 'verified',
    state: status === 'verified' ? 'pending' : 'settled',
    title: 'Signed and verified',
    at: createdAt,
    children: (
      <span className="flex flex-wrap items-center gap-x-1">
        {payer === null ? 'The payer' : <OnChain value={payer} network={chain} kind="address" />}
        <span>signed with {protocolNames[protocol]}. Signature, amount, recipient and funds were checked.</span>
      </span>
    ),
  }
}

function onTheWay({ status, txHash, chain }: Payment): readonly TimelineStep[] {
  if (status === 'verified')
    return [
      {
        key: 'waiting',
        state: 'pending',
        title: 'Waiting for settlement',
        children: 'It is settled when your server calls settle.',
      },
    ]
  if (txHash !== null)
    return [
      {
        key: 'sent',
        state: status === 'settling' ? 'pending' : 'settled',
        title: `Sent to ${networkName(chain)}`,
        children: <OnChain value={txHash} network={chain} kind="tx" />,
      },
    ]
  return status === 'settling'
    ? [
        {
          key: 'sent',
          state: 'pending',
          title: `On its way to ${networkName(chain)}`,
          children: 'It is queued for the next batch.',
        },
      ]
    : []
}

function ended({ status, txHash, settledAt, failureReason, amount, token }: Payment): readonly TimelineStep[] {
  if (status === 'settled') {
    const moved = `${groupDecimal(amount)} ${token}`
    const children =
      txHash === null ? 'The service settles simulated payments itself.' : `${moved} moved to your wallet.`
    return [{ key: 'settled', state: 'settled', title: 'Settled', at: settledAt, children }]
  }
  if (status === 'settlement_failed')
    return [
      {
        key: 'failed',
        state: 'failed',
        title: 'Settlement failed',
        children: `No money moved: ${failureWords(failureReason)}`,
      },
    ]
  return status === 'voided'
    ? [
        {
          key: 'void',
          state: 'void',
          title: 'Voided',
          children: 'The signature can no longer be used here. No money moved.',
        },
      ]
    : []
}

function opened(vaultId: string): TimelineStep {
  const children = <Id value={vaultId} to={`/vaults/${vaultId}`} />
  return { key: 'vault', state: 'settled', title: 'Opened a vault', children }
}

function afterwards({
  status,
  settledAt,
  deliveredAt,
  redeemedAt,
  refundedAmount,
  token,
  vaultId,
}: Payment): readonly TimelineStep[] {
  if (status !== 'settled') return []
  const isOwnStep = deliveredAt !== null && deliveredAt !== settledAt
  return [
    ...(vaultId === null ? [] : [opened(vaultId)]),
    ...(isOwnStep
      ? [{ key: 'delivered', state: 'settled', title: 'Delivered to the payer', at: deliveredAt } as const]
      : []),
    ...(deliveredAt === null ? [{ key: 'delivery', state: 'pending', title: 'Not delivered yet' } as const] : []),
    ...(redeemedAt === null
      ? []
      : [{ key: 'redeemed', state: 'settled', title: 'Redeemed by the payer', at: redeemedAt } as const]),
    ...(refundedAmount === '0'
      ? []
      : [{ key: 'refund', state: 'void', title: `Refunded ${groupDecimal(refundedAmount)} ${token}` } as const]),
  ]
}
