import type { Member, Role } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { RoleChoice } from './roles.tsx'
import { memberName, membersKey, oneOfRole, worksInTestOnly } from './team-words.ts'

interface RoleSheetProps {
  readonly member: Member
  readonly mayMakeOwners: boolean
  readonly onClose: () => void
}

/** Gives a member another role, which holds from their next request on. */
export function RoleSheet({ member, mayMakeOwners, onClose }: RoleSheetProps) {
  const { purser, account } = useWorkspace()
  const queries = useQueryClient()
  const [role, setRole] = useState<Role>(member.role)
  const name = memberName(member)
  const change = useMutation({
    mutationFn: () => purser.organisations.members.update(member.accountId, { role }),
    onSuccess: () => {
      toastDone(`${name} is ${oneOfRole(role)} now`)
      void queries.invalidateQueries({ queryKey: membersKey })
      if (member.accountId === account.id) void queries.invalidateQueries({ queryKey: ['account'] })
      onClose()
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title="Change the role"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button tone="primary" busy={change.isPending} onClick={() => change.mutate()}>
            {role === member.role ? `Confirm ${role}` : `Make ${role}`}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <p>
          <span className="font-medium break-all">{name}</span>{' '}
          <span className="text-ink-2">is {oneOfRole(member.role)}. The new role applies from the next request.</span>
        </p>
        {worksInTestOnly(member) && (
          <p className="text-ink-2">
            A test key invited this person, who works in the test environment only. If you may use the live environment,
            setting or confirming the role here allows it to them too.
          </p>
        )}
        <RoleChoice value={role} onChange={setRole} mayMakeOwners={mayMakeOwners} />
        {change.error !== null && <ErrorBlock error={change.error} />}
      </div>
    </Sheet>
  )
}
