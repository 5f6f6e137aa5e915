import type { AuditRecord, Member } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { Bot, CircleUser, KeyRound, Link2, type LucideIcon, Terminal } from 'lucide-react'
import { usePurser } from '../../api/context.ts'
import { Id } from '../../ui/values.tsx'
import { membersKey } from '../team/team-words.ts'
import { actorIdOf } from './audit-words.ts'

const looks: Readonly<Record<AuditRecord['actor']['kind'], { readonly icon: LucideIcon; readonly word: string }>> = {
  person: { icon: CircleUser, word: 'A person' },
  'api-key': { icon: KeyRound, word: 'API key' },
  guest: { icon: Link2, word: 'A guest' },
  operator: { icon: Terminal, word: 'The operator' },
  system: { icon: Bot, word: 'The service' },
}

/** The actor: a member by the address, another by the id, the service and its operator in words. */
export function Actor({ record }: { record: AuditRecord }) {
  const purser = usePurser()
  const members = useQuery({
    queryKey: [...membersKey, 'names'],
    queryFn: ({ signal }) => purser.organisations.members.list({ limit: 500 }, { signal }).toArray({ limit: 500 }),
  })
  const { icon: Icon, word } = looks[record.actor.kind]
  const id = actorIdOf(record)
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1.5">
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      {nameOf(members.data, id) ?? (id === undefined ? word : <Id value={id} />)}
    </span>
  )
}

function nameOf(members: readonly Member[] | undefined, id: string | undefined) {
  const email = members?.find(({ accountId }) => accountId === id)?.email
  return email == null ? undefined : <span className="truncate">{email}</span>
}
