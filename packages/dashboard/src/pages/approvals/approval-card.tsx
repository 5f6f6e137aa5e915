import { Check, X } from 'lucide-react'
import { useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { Amount } from '../../ui/values.tsx'
import { ApprovalFacts } from './approval-facts.tsx'
import { ApprovalBadge, kindWord } from './approval-state.tsx'
import { type Act, DecisionDialog } from './decision-dialogs.tsx'
import type { Approval } from './queries.ts'

/** One request with all that a person needs to decide, and the decision. */
export function ApprovalCard({ approval, heading: Heading = 'h2' }: { approval: Approval; heading?: 'h1' | 'h2' }) {
  const { status, amount, token, toToken } = approval
  return (
    <article className="min-w-0 rounded-card border border-line bg-surface">
      <header className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line px-4 py-3">
        <Heading className="flex flex-wrap items-baseline gap-x-2">
          <Amount value={amount} token={token} className="text-xl font-semibold tracking-tight" />
          <span className="text-ink-2">
            {kindWord(approval)}
            {toToken === token ? '' : ` to ${toToken}`}
          </span>
        </Heading>
        <ApprovalBadge status={status} />
      </header>
      <div className="p-4">
        <ApprovalFacts approval={approval} />
      </div>
      {status === 'waiting' && <Decide approval={approval} />}
    </article>
  )
}

function Decide({ approval }: { approval: Approval }) {
  const mayDecide = useMay('admin')
  const { account } = useWorkspace()
  const [act, setAct] = useState<Act>()
  const isOwn = approval.requestedBy.accountId === account.id
  return (
    <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-4 py-3 max-sm:[&>button]:flex-1">
      <p className="mr-auto w-full text-sm text-ink-3 empty:hidden">
        {!mayDecide
          ? 'Owners and admins decide.'
          : isOwn
            ? 'You or your key made this request. You can approve it only if nobody else is an owner or admin.'
            : ''}
      </p>
      {isOwn && <Button onClick={() => setAct('cancel')}>Cancel request</Button>}
      {mayDecide && (
        <>
          <Button tone="danger" onClick={() => setAct('refuse')}>
            <X aria-hidden /> Decline
          </Button>
          <Button tone="primary" onClick={() => setAct('approve')}>
            <Check aria-hidden /> Approve
          </Button>
        </>
      )}
      {act !== undefined && (
        <DecisionDialog
          act={act}
          approval={approval}
          onClose={() => setAct(undefined)}
          onRefuse={() => setAct('refuse')}
        />
      )}
    </footer>
  )
}
