import type { AuditRecord } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { Bot, CircleUser, KeyRound, Link2, type LucideIcon, Terminal } from 'lucide-react'
import { useMemo } from 'react'
import { usePurser } from '../../api/context.ts'
import { Tip } from '../../ui/tip.tsx'
import { Id } from '../../ui/values.tsx'
import { keysKey } from '../keys/key-words.ts'
import { memberName, membersKey } from '../team/team-words.ts'
import { actorIdOf } from './audit-words.ts'

const looks: Readonly<Record<AuditRecord['actor']['kind'], { readonly icon: LucideIcon; readonly word: string }>> = {
  person: { icon: CircleUser, word: 'A person' },
  'api-key': { icon: KeyRound, word: 'API key' },
  guest: { icon: Link2, word: 'A guest' },
  operator: { icon: Terminal, word: 'The operator' },
  system: { icon: Bot, word: 'The service' },
}

/** The actor of a record: the address of a member, the name of a key, "The service", "The operator", or otherwise the id. */
export function Actor({ record }: { record: Pick<AuditRecord, 'actor'> }) {
  const { icon: Icon, word } = looks[record.actor.kind]
  const id = actorIdOf(record)
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1.5">
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      {id === undefined ? word : <ActorName id={id} />}
    </span>
  )
}

/** The name of a key, the address of a member, or the id of another. */
export function ActorName({ id }: { id: string }) {
  const name = useActorNames().get(id)
  if (name === undefined) return <Id value={id} />
  return (
    <Tip text={id}>
      <span className="truncate">{name}</span>
    </Tip>
  )
}

/** The members by their accounts, and the newest keys of the environment by their ids, each with its name. */
export function useActorNames(): ReadonlyMap<string, string> {
  const purser = usePurser()
  const people = useQuery({
    queryKey: [...membersKey, 'names'],
    queryFn: ({ signal }) => purser.organisations.members.list({ limit: 500 }, { signal }).toArray({ limit: 500 }),
  })
  const keys = useQuery({
    queryKey: [...keysKey, 'names'],
    queryFn: ({ signal }) => purser.organisations.apiKeys.list({ limit: 500 }, { signal }).toArray({ limit: 500 }),
  })
  return useMemo(
    () =>
      new Map([
        ...(people.data ?? []).map((member) => [member.accountId, memberName(member)] as const),
        ...(keys.data ?? []).map(({ id, name }) => [id, name] as const),
      ]),
    [people.data, keys.data],
  )
}
