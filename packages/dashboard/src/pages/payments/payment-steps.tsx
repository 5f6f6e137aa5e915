import type { Payment, Purser } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import { Check } from 'lucide-react'
import { count, groupDecimal } from '../../ui/format.ts'
import { Network } from '../../ui/network.tsx'
import type { TimelineStep } from '../../ui/timeline.tsx'
import { Id, OnChain } from '../../ui/values.tsx'
import { protocolNames } from './columns.tsx'
import { failureWords } from './payment-state.ts'
import { Receipt } from './receipt.tsx'

/** The steps of a payment that are known to have happened, and the one that it waits for. */
export function paymentSteps(payment: Payment): readonly TimelineStep[] {
  return [
    challenged(payment),
    verified(payment),
    ...onTheWay(payment),
    ...ended(payment),
    ...receiptOf(payment),
    ...afterwards(payment),
  ]
}

function challenged({ amount, token, protocol, challengeId, description }: Payment): TimelineStep {
  return {
    key: 'challenged',
    state: 'settled',
    title: `402: ${groupDecimal(amount)} ${token} requested`,
    children: (
      <span className="flex flex-wrap items-center gap-x-1">
        <span className="min-w-0 break-words">
          {description ?? `The payer chose the offer of ${protocolNames[protocol]}.`}
        </span>
        {challengeId !== null && <Id value={challengeId} />}
      </span>
    ),
  }
}

/** The checks before a payment is recorded; a simulated one has none of them. */
const checks = ['Signature', 'Amount and token', 'Recipient', 'Time limits', 'Funds of the payer', 'Not used before']

function verified({ payer, protocol, chain, createdAt, status }: Payment): TimelineStep {
  return {
    key: 'verified',
    state: status === 'verified' ? 'pending' : 'settled',
    title: 'Signed and verified',
    at: createdAt,
    children: (
      <>
        <span className="flex flex-wrap items-center gap-x-1">
          {payer === null ? 'The payer' : <OnChain value={payer} network={chain} kind="address" />}
          <span>signed with {protocolNames[protocol]}.</span>
        </span>
        {payer !== null && (
          <ul className="mt-1 flex flex-wrap gap-x-3 gap-y-0.5 text-sm">
            {checks.map((check) => (
              <li key={check} className="flex items-center gap-1 whitespace-nowrap">
                <Check className="size-3.5 text-settled" aria-hidden /> {check}
              </li>
            ))}
          </ul>
        )}
      </>
    ),
  }
}

function onTheWay({
  status,
  txHash,
  chain,
  batchId,
  batchPayments,
  block,
  isFinal,
  gasUsd,
}: Payment): readonly TimelineStep[] {
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
        title: (
          <>
            Sent to <Network chain={chain} />
          </>
        ),
        children: (
          <>
            <OnChain value={txHash} network={chain} kind="tx" />
            {batchId !== null && batchPayments > 1 && <Batch batchId={batchId} others={batchPayments - 1} />}
          </>
        ),
      },
      ...(block === null ? [] : [included({ block, isFinal, gasUsd })]),
    ]
  return status === 'settling'
    ? [
        {
          key: 'sent',
          state: 'pending',
          title: (
            <>
              On its way to <Network chain={chain} />
            </>
          ),
          children: 'It is queued for the next batch.',
        },
      ]
    : []
}

/** The payments that the same transaction settles. */
function Batch({ batchId, others }: { batchId: string; others: number }) {
  return (
    <p>
      One transaction settles it with{' '}
      <Link to="/payments" search={{ batchId }} className="text-accent-text underline">
        {count(others, 'other payment')}
      </Link>
      , which share its gas.
    </p>
  )
}

function included({ block, isFinal, gasUsd }: { block: number; isFinal: boolean; gasUsd: string }): TimelineStep {
  const gas = gasUsd === '0' ? '' : ` Its share of the gas was ${gasUsd} USD, paid by the operator.`
  return {
    key: 'included',
    state: isFinal ? 'settled' : 'pending',
    title: `In block ${block.toLocaleString('en-US')}`,
    children: `${isFinal ? 'The block is final.' : 'A reorganization could still remove the block.'}${gas}`,
  }
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

/** The statement about the settled payment that the payer gets with the response. A simulated payment has none. */
function receiptOf(payment: Payment): readonly TimelineStep[] {
  if (payment.status !== 'settled' || payment.txHash === null) return []
  return [{ key: 'receipt', state: 'settled', title: 'Receipt for the payer', children: <Receipt payment={payment} /> }]
}

function opened(vaultId: string): TimelineStep {
  const children = <Id value={vaultId} to={`/vaults/${vaultId}`} />
  return { key: 'vault', state: 'settled', title: 'Opened a vault', children }
}

function afterwards({ status, settledAt, deliveredAt, redeemedAt, vaultId }: Payment): readonly TimelineStep[] {
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
  ]
}

const refundStates = {
  pending: { state: 'pending', title: 'Refund on its way' },
  completed: { state: 'settled', title: 'Refunded' },
  failed: { state: 'failed', title: 'Refund failed' },
} as const

type Refund = Awaited<ReturnType<Purser['payments']['refund']>>

/** A step for each refund, the first one first, with the transfer that pays it. */
export function refundSteps(refunds: readonly Refund[]): readonly TimelineStep[] {
  return refunds.toReversed().map(({ id, status, amount, token, reason, transferId, createdAt, completedAt }) => ({
    key: id,
    state: refundStates[status].state,
    title: `${refundStates[status].title}: ${groupDecimal(amount)} ${token}`,
    at: completedAt ?? createdAt,
    children: (
      <>
        {reason !== null && <span className="mr-1.5 break-words">{reason}</span>}
        <Link
          to="/transfers/$transferId"
          params={{ transferId }}
          className="whitespace-nowrap text-accent-text hover:underline"
        >
          Follow the transfer
        </Link>
      </>
    ),
  }))
}

/** The step that precedes an event, by its type; those of other types come last. */
const anchors: Readonly<Record<string, string>> = {
  'payment.received': 'verified',
  'payment.settled': 'settled',
  'payment.settlement_failed': 'failed',
}

/** Returns the steps with each event after the step that it reports. */
export function withEvents(
  steps: readonly TimelineStep[],
  events: readonly (TimelineStep & { readonly type: string })[],
): readonly TimelineStep[] {
  const behind = (key: string | undefined) =>
    events.filter(({ type }) => (steps.some((step) => step.key === anchors[type]) ? anchors[type] : undefined) === key)
  return [...steps.flatMap((step) => [step, ...behind(step.key)]), ...behind(undefined)]
}
