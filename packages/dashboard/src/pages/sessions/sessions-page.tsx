import type { Session } from '@purser/sdk'
import { useNavigate } from '@tanstack/react-router'
import { KeyRound } from 'lucide-react'
import { useCallback } from 'react'
import { usePurser } from '../../api/context.ts'
import { useListing } from '../../api/listing.ts'
import { useRefreshOn } from '../../live/use-live.ts'
import { count } from '../../ui/format.ts'
import { ListCard } from '../../ui/list-card.tsx'
import { Empty, Page } from '../../ui/page.tsx'
import { StateBadge } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { sessionsKey, TestSessionButton } from './test-session.tsx'

/**
 * All sessions, newest first. A session grants the payer of one payment access until it expires; its vault contains the
 * goods delivered.
 */
export function SessionsPage() {
  const purser = usePurser()
  const navigate = useNavigate()
  const listing = useListing(sessionsKey, (query, options) => purser.sessions.list(query, options).page())
  useRefreshOn(['payment.', 'vault.'], sessionsKey)
  const open = useCallback(
    ({ vaultId }: Session) => void navigate({ to: '/vaults/$vaultId', params: { vaultId } }),
    [navigate],
  )
  return (
    <Page title="Sessions" state={summaryOf(listing)} action={listing.rows.length > 0 && <TestSessionButton />} wide>
      <ListCard
        label="Sessions"
        listing={listing}
        columns={columns}
        rowKey={rowKey}
        compact={compact}
        onOpen={open}
        empty={
          <Empty icon={<KeyRound />} title="No sessions yet" action={<TestSessionButton tone="primary" />}>
            A session lets an agent pay once and call many times until it expires. Each has a vault of its own.
          </Empty>
        }
      />
    </Page>
  )
}

const columns: readonly Column<Session>[] = [
  { id: 'session', head: 'Session', width: 'w-50', cell: ({ sessionId }) => <Id value={sessionId} /> },
  { id: 'state', head: 'State', width: 'w-28', cell: (session) => <SessionBadge session={session} /> },
  { id: 'vault', head: 'Vault', cell: (session) => <VaultLink session={session} /> },
  {
    id: 'expires',
    head: 'Expires',
    align: 'right',
    width: 'w-39',
    cell: ({ expiresAt }) => <Time at={expiresAt} />,
  },
]

const rowKey = ({ sessionId }: Session) => sessionId
const compact = (session: Session) => (
  <>
    <span className="flex items-center justify-between gap-3">
      <Id value={session.sessionId} />
      <SessionBadge session={session} />
    </span>
    <span className="flex items-center justify-between gap-3 text-sm text-ink-2">
      <VaultLink session={session} />
      <Time at={session.expiresAt} />
    </span>
  </>
)

function SessionBadge({ session: { isExpired } }: { session: Session }) {
  return isExpired ? <StateBadge state="void">Expired</StateBadge> : <StateBadge state="settled">Open</StateBadge>
}

function VaultLink({ session: { vaultId } }: { session: Session }) {
  return (
    <span className="inline-flex min-w-0 items-center">
      <Id value={vaultId} to={`/vaults/${vaultId}`} />
    </span>
  )
}

function summaryOf({ rows, hasMore }: { readonly rows: readonly Session[]; readonly hasMore: boolean }): string {
  if (rows.length === 0) return 'One payment grants its payer access until the session expires.'
  const open = rows.filter(({ isExpired }) => !isExpired).length
  const shown = hasMore ? `the newest ${rows.length} sessions` : count(rows.length, 'session')
  return `${open} of ${shown} ${open === 1 ? 'is' : 'are'} open.`
}
