import type { Member } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useWorkspace } from '../../api/context.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { memberName, membersKey } from './team-words.ts'

interface RemoveDialogProps {
  readonly member: Member
  readonly isSelf: boolean
  readonly onClose: () => void
}

/** Removes a member or revokes an invitation, after a confirmation. */
export function RemoveDialog({ member, isSelf, onClose }: RemoveDialogProps) {
  const { purser, organisation } = useWorkspace()
  const queries = useQueryClient()
  const name = memberName(member)
  const isInvited = member.status === 'invited'
  const remove = useMutation({
    mutationFn: () => purser.organisations.members.remove(member.accountId),
    onSuccess: () => {
      toastDone(isInvited ? `The invitation of ${name} is revoked` : `${name} is removed`)
      void queries.invalidateQueries({ queryKey: isSelf ? ['account'] : membersKey })
      onClose()
    },
  })
  return (
    <ActionDialog
      title={isInvited ? 'Revoke the invitation' : isSelf ? `Leave ${organisation.name}` : 'Remove this person'}
      act={isInvited ? 'Revoke it' : isSelf ? 'Leave' : 'Remove'}
      keep="Cancel"
      tone="danger"
      action={remove}
      onClose={onClose}
    >
      <p className="text-ink-2">
        <span className="font-medium break-all text-ink">{name}</span>{' '}
        {isInvited
          ? 'can no longer accept it.'
          : 'is refused from the next request on. API keys that they made belong to the organisation and stay: revoke those separately.'}
      </p>
    </ActionDialog>
  )
}
