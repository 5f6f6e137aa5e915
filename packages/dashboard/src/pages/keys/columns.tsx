import type { ApiKeyRecord } from '@purser/sdk'
import { Trash2 } from 'lucide-react'
import { IconButton } from '../../ui/button.tsx'
import { StateBadge, Tag } from '../../ui/state.tsx'
import type { Column } from '../../ui/table.tsx'
import { Time, useNow } from '../../ui/values.tsx'
import { Actor } from '../audit/actor.tsx'
import { useCreators } from './creators.ts'
import { shownKey, stateOf } from './key-words.ts'

type OnRevoke = ((key: ApiKeyRecord) => void) | undefined

export function columnsWith(onRevoke: OnRevoke): readonly Column<ApiKeyRecord>[] {
  return [
    { id: 'name', head: 'Name', cell: ({ name }) => <span className="font-medium">{name}</span> },
    { id: 'key', head: 'Key', width: 'w-42', cell: (key) => <ShownKey apiKey={key} /> },
    { id: 'state', head: 'State', width: 'w-30', cell: (key) => <KeyBadge apiKey={key} /> },
    { id: 'scopes', head: 'Permissions', width: 'w-42', from: 'lg', cell: (key) => <Scopes apiKey={key} /> },
    { id: 'used', head: 'Last used', width: 'w-28', from: 'lg', cell: (key) => <LastUsed apiKey={key} /> },
    { id: 'end', head: 'Expires', width: 'w-34', from: 'xl', cell: (key) => <End apiKey={key} /> },
    { id: 'creator', head: 'Created by', width: 'w-42', from: 'xl', cell: (key) => <Creator apiKey={key} /> },
    {
      id: 'acts',
      head: <span className="sr-only">Revoke</span>,
      align: 'right',
      width: 'w-14',
      cell: (key) => <Revoke apiKey={key} onRevoke={onRevoke} />,
    },
  ]
}

interface KeyProps {
  readonly apiKey: ApiKeyRecord
}

export function CompactKey({ apiKey, onRevoke }: KeyProps & { onRevoke: OnRevoke }) {
  return (
    <span className="flex items-center justify-between gap-3">
      <span className="min-w-0 flex-1">
        <span className="block truncate font-medium">{apiKey.name}</span>
        <ShownKey apiKey={apiKey} />
      </span>
      <KeyBadge apiKey={apiKey} />
      <Revoke apiKey={apiKey} onRevoke={onRevoke} />
    </span>
  )
}

function ShownKey({ apiKey: { environment, last4 } }: KeyProps) {
  return <span className="font-mono text-sm whitespace-nowrap text-ink-2">{shownKey(environment, last4)}</span>
}

function KeyBadge({ apiKey }: KeyProps) {
  const state = stateOf(apiKey, useNow())
  if (state === 'valid') return <StateBadge state="settled">Valid</StateBadge>
  return <StateBadge state="void">{state === 'expired' ? 'Expired' : 'Revoked'}</StateBadge>
}

function Scopes({ apiKey: { scopes } }: KeyProps) {
  if (scopes === null) return <span className="text-ink-2">Everything</span>
  return (
    <span className="inline-flex max-w-full gap-1 overflow-hidden" title={scopes.join(', ')}>
      {scopes.map((scope) => (
        <Tag key={scope}>{scope}</Tag>
      ))}
    </span>
  )
}

function LastUsed({ apiKey: { lastUsedAt } }: KeyProps) {
  return lastUsedAt === null ? <span className="text-ink-3">never</span> : <Time at={lastUsedAt} />
}

function End({ apiKey: { revokedAt, expiresAt } }: KeyProps) {
  if (revokedAt !== null)
    return (
      <span className="text-ink-3">
        ended <Time at={revokedAt} />
      </span>
    )
  const at = expiresAt
  return at === null ? <span className="text-ink-3">never</span> : <Time at={at} />
}

/** The creator of the key according to the audit log; without a record, the key that created it, if any. */
function Creator({ apiKey: { id, madeBy } }: KeyProps) {
  const actor = useCreators().get(id)
  if (actor !== undefined) return <Actor record={{ actor }} />
  if (madeBy !== null) return <Actor record={{ actor: { kind: 'api-key', apiKeyId: madeBy } }} />
  return <span className="text-ink-3">not known</span>
}

function Revoke({ apiKey, onRevoke }: KeyProps & { onRevoke: OnRevoke }) {
  if (onRevoke === undefined || apiKey.revokedAt !== null) return null
  return (
    <IconButton label={`Revoke ${apiKey.name}`} onClick={() => onRevoke(apiKey)}>
      <Trash2 aria-hidden />
    </IconButton>
  )
}
