import type { Member } from '@purser/sdk'
import { Pencil, UserMinus } from 'lucide-react'
import { IconButton } from '../../ui/button.tsx'
import { createdColumn } from '../../ui/created-column.tsx'
import { sentenceCase } from '../../ui/format.ts'
import { StateBadge, Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Tip } from '../../ui/tip.tsx'
import { Id } from '../../ui/values.tsx'
import { memberName, worksInTestOnly } from './team-words.ts'

export interface MemberActs {
  readonly ownId: string
  readonly mayChange: (member: Member) => boolean
  readonly onRole: (member: Member) => void
  readonly onRemove: (member: Member) => void
}

export function columnsWith(acts: MemberActs): readonly Column<Member>[] {
  return [
    { id: 'person', head: 'Person', cell: (member) => <Person member={member} ownId={acts.ownId} /> },
    { id: 'role', head: 'Role', width: 'w-39', cell: (member) => <RoleCell member={member} /> },
    { id: 'state', head: 'State', width: 'w-28', cell: ({ status }) => <MemberBadge status={status} /> },
    { id: 'account', head: 'Account', width: 'w-39', from: 'lg', cell: ({ accountId }) => <Id value={accountId} /> },
    createdColumn('Since', 'lg'),
    {
      id: 'acts',
      head: <span className="sr-only">Change</span>,
      align: 'right',
      width: 'w-21',
      cell: (member) => <Acts member={member} acts={acts} />,
    },
  ]
}

export function CompactMember({ member, acts }: { member: Member; acts: MemberActs }) {
  return (
    <span className="flex items-center justify-between gap-3">
      <span className="min-w-0">
        <span className="flex min-w-0">
          <Person member={member} ownId={acts.ownId} />
        </span>
        <span className="block text-sm text-ink-2">
          {sentenceCase(member.role)}
          {member.status === 'invited' && ', invited'}
          {worksInTestOnly(member) && ', test environment only'}
        </span>
      </span>
      <Acts member={member} acts={acts} />
    </span>
  )
}

function Person({ member, ownId }: { member: Member; ownId: string }) {
  const { email, accountId } = member
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-2">
      {email === null ? <Id value={accountId} /> : <span className="truncate font-medium">{email}</span>}
      {accountId === ownId && <Tag>You</Tag>}
    </span>
  )
}

function RoleCell({ member }: { member: Member }) {
  return (
    <span className="inline-flex items-center gap-2">
      {sentenceCase(member.role)}
      {worksInTestOnly(member) && (
        <Tip text="A test key invited this person. A role that an owner or admin gives allows the live environment too.">
          <span className="inline-flex">
            <Tag>Test only</Tag>
          </span>
        </Tip>
      )}
    </span>
  )
}

function MemberBadge({ status }: Pick<Member, 'status'>) {
  return status === 'active' ? (
    <StateBadge state="settled">Active</StateBadge>
  ) : (
    <StateBadge state="pending">Invited</StateBadge>
  )
}

function Acts({ member, acts: { mayChange, onRole, onRemove } }: { member: Member; acts: MemberActs }) {
  if (!mayChange(member)) return null
  const name = memberName(member)
  return (
    <span className="inline-flex">
      <IconButton label={`Change the role of ${name}`} onClick={() => onRole(member)}>
        <Pencil aria-hidden />
      </IconButton>
      <IconButton label={`Remove ${name}`} onClick={() => onRemove(member)}>
        <UserMinus aria-hidden />
      </IconButton>
    </span>
  )
}
