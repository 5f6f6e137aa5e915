import type { Member } from '@purser/sdk'
import { Plus, Users } from 'lucide-react'
import { useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { Button } from '../../ui/button.tsx'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { CompactMember, columnsWith, type MemberActs } from './columns.tsx'
import { InviteSheet } from './invite-sheet.tsx'
import { RemoveDialog } from './remove-dialog.tsx'
import { RoleSheet } from './role-sheet.tsx'
import { RolesCard } from './roles.tsx'
import { membersKey } from './team-words.ts'

type Doing = { readonly act: 'invite' } | { readonly act: 'role' | 'remove'; readonly member: Member }

/** The members of the organisation with their roles, and the open invitations. */
export function TeamPage() {
  const { account, purser } = useWorkspace()
  const isAdmin = useMay('admin')
  const isOwner = useMay('owner')
  const [doing, setDoing] = useState<Doing>()
  const close = () => setDoing(undefined)
  const listing = useListing(membersKey, (query, options) => purser.organisations.members.list(query, options).page())
  useRefreshOn(['member.'], membersKey)
  const invite = isAdmin && (
    <Button tone="primary" onClick={() => setDoing({ act: 'invite' })}>
      <Plus aria-hidden /> Invite
    </Button>
  )
  const acts: MemberActs = {
    ownId: account.id,
    mayChange: ({ role }) => isAdmin && (role !== 'owner' || isOwner),
    onRole: (member) => setDoing({ act: 'role', member }),
    onRemove: (member) => setDoing({ act: 'remove', member }),
  }
  return (
    <Page title="Team" state={summaryOf(listing)} action={invite} wide>
      <ListCard
        label="Team"
        listing={listing}
        columns={columnsWith(acts)}
        rowKey={rowKey}
        compact={(member) => <CompactMember member={member} acts={acts} />}
        empty={
          <Empty icon={<Users />} title="No members yet" action={invite}>
            Invite the people who work with this money.
          </Empty>
        }
      />
      <RolesCard />
      {doing?.act === 'invite' && <InviteSheet mayMakeOwners={isOwner} onClose={close} />}
      {doing?.act === 'role' && <RoleSheet member={doing.member} mayMakeOwners={isOwner} onClose={close} />}
      {doing?.act === 'remove' && (
        <RemoveDialog member={doing.member} isSelf={doing.member.accountId === account.id} onClose={close} />
      )}
    </Page>
  )
}

const rowKey = ({ accountId }: Member) => accountId

function summaryOf({ rows, hasMore }: { readonly rows: readonly Member[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'The members of this organisation.'
  const invited = rows.filter(({ status }) => status === 'invited').length
  const active = `${hasMore ? 'More than ' : ''}${count(rows.length - invited, 'person', 'people')}`
  return invited === 0 ? `${active}.` : `${active} and ${count(invited, 'open invitation')}.`
}
