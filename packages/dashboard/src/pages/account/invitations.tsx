import type { Account } from '@purser/sdk'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Building2 } from 'lucide-react'
import { sessionClient } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { sentenceCase } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { Time } from '../../ui/values.tsx'

type Invitation = Account['invitations'][number]

/**
 * The open invitations of the person, each with buttons to accept and to decline. Renders nothing if there are none.
 */
export function Invitations({ invitations }: { invitations: readonly Invitation[] }) {
  if (invitations.length === 0) return null
  return (
    <Card title="Invitations" flush>
      <ul>
        {invitations.map((invitation) => (
          <InvitationRow key={invitation.id} invitation={invitation} />
        ))}
      </ul>
    </Card>
  )
}

function InvitationRow({ invitation: { id, name, role, invitedAt } }: { invitation: Invitation }) {
  const queries = useQueryClient()
  const response = useMutation({
    mutationFn: (act: 'accept' | 'decline') => sessionClient(undefined, undefined).account.invitations[act](id),
    onSuccess: (_, act) => {
      toastDone(act === 'accept' ? `You joined ${name}` : `You declined the invitation of ${name}`)
      return queries.invalidateQueries({ queryKey: ['account'] })
    },
    onError: toastFailed,
  })
  const busy = (act: 'accept' | 'decline') => response.isPending && response.variables === act
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-4 py-3 last:border-b-0">
      <Building2 className="size-4 shrink-0 text-ink-3" aria-hidden />
      <div className="min-w-0 flex-1 basis-48">
        <p className="font-medium break-words">{name}</p>
        <p className="text-sm text-ink-2">
          {sentenceCase(role)}, invited <Time at={invitedAt} />
        </p>
      </div>
      <span className="flex gap-2">
        <Button small busy={busy('decline')} disabled={response.isPending} onClick={() => response.mutate('decline')}>
          Decline
        </Button>
        <Button
          small
          tone="primary"
          busy={busy('accept')}
          disabled={response.isPending}
          onClick={() => response.mutate('accept')}
        >
          Join as {role}
        </Button>
      </span>
    </li>
  )
}
