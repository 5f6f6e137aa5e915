import { PurserError } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { usePurser } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { groupDecimal } from '../../ui/format.ts'
import { Dialog } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Amount } from '../../ui/values.tsx'
import { Recipient } from './approval-facts.tsx'
import { type Approval, approvalsKey } from './queries.ts'

export type Act = 'approve' | 'refuse' | 'cancel'

interface DialogProps {
  readonly approval: Approval
  readonly onClose: () => void
}

interface ApproveProps extends DialogProps {
  /** Opens the dialog that declines the request; offered when nobody can approve it. */
  readonly onRefuse: () => void
}

/** Confirms an approval, a refusal or a cancellation. */
export function DecisionDialog({ act, onRefuse, ...props }: ApproveProps & { act: Act }) {
  if (act === 'approve') return <ApproveDialog {...props} onRefuse={onRefuse} />
  return act === 'refuse' ? <RefuseDialog {...props} /> : <CancelDialog {...props} />
}

function useDecision(decide: () => Promise<Approval>, done: string, onClose: () => void) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: decide,
    onSuccess: () => {
      toastDone(done)
      onClose()
    },
    // Somebody else may have decided meanwhile: the page shows what holds now in either case.
    onSettled: () => queries.invalidateQueries({ queryKey: approvalsKey }),
  })
}

function ApproveDialog({ approval, onClose, onRefuse }: ApproveProps) {
  const purser = usePurser()
  const { id, amount, token } = approval
  const money = `${groupDecimal(amount)} ${token}`
  const approve = useDecision(() => purser.approvals.approve(id), `${money} approved`, onClose)
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Approve ${money}`}
      footer={
        <>
          <Button onClick={onClose}>Not yet</Button>
          {isForNobody(approve.error) ? (
            <Button tone="danger" onClick={onRefuse}>
              Decline {money}
            </Button>
          ) : (
            <Button tone="primary" busy={approve.isPending} onClick={() => approve.mutate()}>
              Approve {money}
            </Button>
          )}
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="flex flex-wrap items-center gap-x-1.5 gap-y-1">
          <Amount value={amount} token={token} className="font-medium" /> goes to <Recipient approval={approval} />
        </p>
        <p className="text-ink-2">
          The limits of the policy are checked again. The movement then starts within a second and cannot be canceled.
        </p>
        {approve.error !== null && <ErrorBlock error={approve.error} onRetry={() => approve.mutate()} />}
      </div>
    </Dialog>
  )
}

/** Whether the requester has lost the right to move money, so that nobody can approve the request. */
function isForNobody(error: Error | null): boolean {
  return error instanceof PurserError && error.code === 'approval-requester-not-allowed'
}

function RefuseDialog({ approval, onClose }: DialogProps) {
  const purser = usePurser()
  const [reason, setReason] = useState('')
  const words = reason.trim()
  const refuse = useDecision(
    () => purser.approvals.refuse(approval.id, words === '' ? {} : { reason: words }),
    'The request is declined',
    onClose,
  )
  return (
    <ActionDialog
      title="Decline this request"
      act={
        <>
          Decline {groupDecimal(approval.amount)} {approval.token}
        </>
      }
      keep="Not yet"
      tone="danger"
      action={refuse}
      onClose={onClose}
    >
      <p className="text-ink-2">No money moves, and the reserved amount is available again.</p>
      <Field label="Reason" hint="Optional. The requester sees it.">
        {(wiring) => (
          <TextInput {...wiring} maxLength={200} value={reason} onChange={({ target }) => setReason(target.value)} />
        )}
      </Field>
    </ActionDialog>
  )
}

function CancelDialog({ approval, onClose }: DialogProps) {
  const purser = usePurser()
  const cancel = useDecision(() => purser.approvals.cancel(approval.id), 'The request is canceled', onClose)
  return (
    <ActionDialog
      title="Cancel your request"
      act="Cancel the request"
      keep="Keep it"
      tone="danger"
      action={cancel}
      onClose={onClose}
    >
      <p className="text-ink-2">No money moves, and the reserved amount is available again.</p>
    </ActionDialog>
  )
}
