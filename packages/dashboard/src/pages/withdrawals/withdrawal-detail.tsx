import type { Withdrawal } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { classes } from '../../ui/classes.ts'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Card, Fact, Facts, Skeleton } from '../../ui/page.tsx'
import { Timeline, type TimelineStep } from '../../ui/timeline.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { approvalSteps } from '../approvals/approval-step.tsx'
import { accountLabel, useBankAccounts } from '../bank-accounts/queries.ts'
import { FromWallet } from '../transfers/from-wallet.tsx'
import { Payout } from './columns.tsx'
import { refundWords, WithdrawalBadge, whereWithdrawalIs } from './withdrawal-state.tsx'

/** Shows where the money of one withdrawal is, step by step. */
export function WithdrawalDetail({ withdrawalId, wide = false }: { withdrawalId: string; wide?: boolean }) {
  const purser = usePurser()
  const key = ['withdrawals', 'one', withdrawalId]
  const found = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => purser.withdrawals.get(withdrawalId, { signal }),
  })
  useRefreshOn(['withdrawal.', 'approval.'], key)
  const { data, error } = found
  if (data === undefined)
    return error === null ? <Skeleton lines={9} /> : <ErrorBlock error={error} onRetry={() => found.refetch()} />
  return (
    <div className="flex flex-col gap-5">
      <header className="flex flex-col gap-2">
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="text-2xl font-semibold tracking-tight">
            <Amount value={data.amount} token={data.token} />
          </h1>
          <WithdrawalBadge {...data} />
        </div>
        <p className="text-ink-2">{whereWithdrawalIs(data)}</p>
      </header>
      <div className={classes('grid items-start gap-5', wide && 'lg:grid-cols-main-side')}>
        <Card title="What happened">
          <Timeline steps={steps(data)} />
        </Card>
        <Card title="Details">
          <WithdrawalFacts withdrawal={data} />
        </Card>
      </div>
    </div>
  )
}

function steps(withdrawal: Withdrawal): readonly TimelineStep[] {
  const { status, createdAt, txHash, chain, completedAt, failedAt } = withdrawal
  const isWaiting = withdrawal.approval?.status === 'waiting'
  const isConverted = status === 'conversion_complete' || status === 'completed'
  const sent: TimelineStep =
    txHash === null
      ? { key: 'sent', state: status === 'failed' || isWaiting ? 'void' : 'pending', title: 'Tokens not sent yet' }
      : {
          key: 'sent',
          state: 'settled',
          title: 'Tokens sent to the partner',
          children: <OnChain value={txHash} network={chain} kind="tx" />,
        }
  const end: readonly TimelineStep[] =
    status === 'failed'
      ? [{ key: 'end', state: 'failed', title: 'Failed', at: failedAt, children: refundWords(withdrawal) }]
      : [
          {
            key: 'converted',
            state: isConverted ? 'settled' : isWaiting ? 'void' : 'pending',
            title: isConverted ? 'Converted' : 'Waits for conversion',
          },
          status === 'completed'
            ? { key: 'end', state: 'settled', title: 'Bank paid', at: completedAt }
            : { key: 'end', state: isWaiting ? 'void' : 'pending', title: 'Waits for the bank' },
        ]
  const requested: TimelineStep = { key: 'created', state: 'settled', title: 'Requested', at: createdAt }
  return [requested, ...approvalSteps(withdrawal.approval), sent, ...end]
}

function BankAccount({ id }: { id: string }) {
  const account = useBankAccounts().data?.find((one) => one.id === id)
  return account === undefined ? (
    <Id value={id} />
  ) : (
    <span className="min-w-0 break-words">{accountLabel(account)}</span>
  )
}

function WithdrawalFacts({ withdrawal }: { withdrawal: Withdrawal }) {
  const { id, fromWalletId, bankAccountId, chain, token, feeAmount, exchangeRate, currency, reference } = withdrawal
  return (
    <Facts>
      <Fact name="Withdrawal">
        <Id value={id} />
      </Fact>
      <Fact name="From">
        <FromWallet walletId={fromWalletId} chain={chain} />
      </Fact>
      <Fact name="Bank account">
        <BankAccount id={bankAccountId} />
      </Fact>
      <Fact name="Bank receives">
        <Payout row={withdrawal} />
      </Fact>
      {feeAmount !== null && (
        <Fact name="Fee">
          <Amount value={feeAmount} token={token} />
        </Fact>
      )}
      {exchangeRate !== null && (
        <Fact name="Rate">
          1 {token} = {exchangeRate} {currency}
        </Fact>
      )}
      {reference !== null && <Fact name="Reference">{reference}</Fact>}
      <Fact name="Created">
        <Time at={withdrawal.createdAt} full />
      </Fact>
    </Facts>
  )
}
