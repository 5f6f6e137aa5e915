import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { usePurser } from '../../api/context.ts'
import { middleTruncate, sentenceCase } from '../../ui/format.ts'
import { Network } from '../../ui/network.tsx'
import { Fact, Facts } from '../../ui/page.tsx'
import { Amount, Id, OnChain, Time } from '../../ui/values.tsx'
import { ActorName } from '../audit/actor.tsx'
import { accountLabel, useBankAccounts } from '../bank-accounts/queries.ts'
import { walletQuery } from '../wallets/queries.ts'
import { walletPath } from '../wallets/wallet-path.ts'
import { walletName } from '../wallets/wallet-state.tsx'
import { kindWord, requester, subjectPath } from './approval-state.tsx'
import type { Approval } from './queries.ts'

/** The facts that a decision needs: source, recipient, requester, the reason for the approval, and what each limit leaves afterwards. */
export function ApprovalFacts({ approval }: { approval: Approval }) {
  const { status, token, approvalAbove, note, requestedBy, deniedBy, createdAt, decidedAt, reason } = approval
  const path = subjectPath(approval)
  return (
    <Facts>
      <Fact name="From">
        <FromWallet approval={approval} />
      </Fact>
      <Fact name="To">
        <Recipient approval={approval} />
      </Fact>
      <Fact name="Requested by">{requester(requestedBy)}</Fact>
      <Fact name="For">{note ?? <span className="text-ink-3">no reason given</span>}</Fact>
      <Fact name="Rule">
        <span>
          The policy requires an approval above <Amount value={approvalAbove} token={token} />
        </span>
      </Fact>
      <Remaining approval={approval} />
      {deniedBy !== null && (
        <Fact name="Refused now by">
          <span className="font-medium text-failed">{sentenceCase(deniedBy)}</span>
        </Fact>
      )}
      <Fact name="Requested">
        <Time at={createdAt} />
      </Fact>
      {status === 'waiting' && (
        <Fact name="Expires">
          <Time at={approval.expiresAt} full />
        </Fact>
      )}
      {decidedAt !== null && (
        <Fact name="Decided">
          <Time at={decidedAt} full /> <DecidedBy approval={approval} />
        </Fact>
      )}
      {reason !== null && <Fact name="Reason">{reason}</Fact>}
      {path !== undefined && (
        <Fact name={kindWord(approval)}>
          <Id value={path.split('/').at(-1) ?? ''} to={path} />
        </Fact>
      )}
    </Facts>
  )
}

function FromWallet({ approval: { masterWalletId, fromWalletId, chain } }: { approval: Approval }) {
  const { data } = useQuery(walletQuery(usePurser(), masterWalletId))
  return (
    <>
      <Link
        to="/wallets/$walletId"
        params={{ walletId: masterWalletId }}
        className="min-w-0 break-words text-accent-text hover:underline"
      >
        {data === undefined ? middleTruncate(masterWalletId) : walletName(data)}
      </Link>
      {fromWalletId !== masterWalletId && <Id value={fromWalletId} to={walletPath(fromWalletId)} />}
      <span className="text-ink-3">
        on <Network chain={chain} />
      </span>
    </>
  )
}

export function Recipient({ approval: { to, toChain, withdrawalId } }: { approval: Approval }) {
  const accounts = useBankAccounts({ isWanted: withdrawalId !== null })
  if (withdrawalId === null)
    return (
      <>
        <OnChain value={to} network={toChain} kind="address" />
        <span className="text-ink-3">
          on <Network chain={toChain} />
        </span>
      </>
    )
  const account = accounts.data?.find(({ id }) => id === to)
  return account === undefined ? (
    <Id value={to} />
  ) : (
    <span className="min-w-0 break-words">{accountLabel(account)}</span>
  )
}

const windows = { perHour: 'this hour', perDay: 'today', perMonth: 'in 30 days' } as const

/** The remaining amount of each limit after this request. */
function Remaining({ approval: { remaining, token } }: { approval: Approval }) {
  const left = Object.entries(windows).flatMap(([name, when]) => {
    const amount = remaining?.[name as keyof typeof windows]
    return amount === null || amount === undefined ? [] : [{ when, amount }]
  })
  if (left.length === 0) return null
  return (
    <Fact name="Remaining limits">
      {left.map(({ when, amount }) => (
        <span key={when} className="mr-2">
          <Amount value={amount} token={token} /> <span className="text-ink-3">{when}</span>
        </span>
      ))}
    </Fact>
  )
}

function DecidedBy({ approval: { decidedBy } }: { approval: Approval }) {
  return decidedBy === null ? null : (
    <>
      by <ActorName id={decidedBy} />
    </>
  )
}
