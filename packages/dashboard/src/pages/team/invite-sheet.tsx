import type { Role } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { Sheet } from '../../ui/overlay.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { RoleChoice } from './roles.tsx'
import { membersKey } from './team-words.ts'

/** Invites a person by address. Nothing opens for them until they sign in and accept. */
export function InviteSheet({ mayMakeOwners, onClose }: { mayMakeOwners: boolean; onClose: () => void }) {
  const { purser, organisation } = useWorkspace()
  const queries = useQueryClient()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const invite = useMutation({
    mutationFn: () => purser.organisations.members.add({ email: email.trim(), role }),
    onSuccess: () => {
      toastDone(`${email.trim()} is invited`, 'The invitation waits on their account page.')
      void queries.invalidateQueries({ queryKey: membersKey })
      onClose()
    },
  })
  return (
    <Sheet
      open
      onClose={onClose}
      title={`Invite to ${organisation.name}`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="invite" tone="primary" busy={invite.isPending} disabled={email.trim() === ''}>
            Invite as {role}
          </Button>
        </>
      }
    >
      <form
        id="invite"
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          invite.mutate()
        }}
      >
        <Field
          label="Email"
          hint="The invited person signs in with this address and accepts. Until then they have no access and do not count toward the plan."
        >
          {(wiring) => (
            <TextInput
              {...wiring}
              type="email"
              maxLength={254}
              value={email}
              onChange={({ target }) => setEmail(target.value)}
            />
          )}
        </Field>
        <RoleChoice value={role} onChange={setRole} mayMakeOwners={mayMakeOwners} />
        {invite.error !== null && <ErrorBlock error={invite.error} />}
      </form>
    </Sheet>
  )
}

/** The sheet with what the person's own role may give. */
export function InviteAct({ onClose }: { onClose: () => void }) {
  return <InviteSheet mayMakeOwners={useMay('owner')} onClose={onClose} />
}
