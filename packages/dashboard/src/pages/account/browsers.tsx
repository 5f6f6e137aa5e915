import type { SignInSession } from '@purser/sdk'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Laptop, Smartphone } from 'lucide-react'
import { sessionClient } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { count } from '../../ui/format.ts'
import { Card, Skeleton } from '../../ui/page.tsx'
import { Tag } from '../../ui/state.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { Time } from '../../ui/values.tsx'
import { browserName } from './browser-name.ts'
import { browsersKey } from './queries.ts'

/** The sessions of the account. Signing one out ends it immediately. */
export function Browsers() {
  const queries = useQueryClient()
  const { account } = sessionClient(undefined, undefined)
  const sessions = useQuery({
    queryKey: browsersKey,
    queryFn: ({ signal }) => account.sessions.list({ limit: 100 }, { signal }).toArray({ limit: 100 }),
  })
  const end = useMutation({
    mutationFn: async (ended: readonly SignInSession[]) => {
      for (const { id } of ended) await account.sessions.end(id)
      return ended.length
    },
    onSuccess: (ended) => toastDone(`${count(ended, 'session')} ended`),
    onError: toastFailed,
    onSettled: () => queries.invalidateQueries({ queryKey: browsersKey }),
  })
  const others = sessions.data?.filter(({ isCurrent }) => !isCurrent) ?? []
  return (
    <Card
      title="Active sessions"
      flush
      aside={
        others.length > 1 && (
          <Button small tone="danger" busy={end.isPending} onClick={() => end.mutate(others)}>
            Sign out all others
          </Button>
        )
      }
    >
      {sessions.error !== null ? (
        <div className="p-4">
          <ErrorBlock error={sessions.error} onRetry={() => sessions.refetch()} />
        </div>
      ) : sessions.data === undefined ? (
        <Skeleton lines={2} className="p-4" />
      ) : (
        <ul aria-label="Sessions">
          {sessions.data.map((session) => (
            <SessionRow
              key={session.id}
              session={session}
              isEnding={end.isPending && end.variables.includes(session)}
              onEnd={() => end.mutate([session])}
            />
          ))}
        </ul>
      )}
    </Card>
  )
}

interface SessionRowProps {
  readonly session: SignInSession
  readonly isEnding: boolean
  readonly onEnd: () => void
}

function SessionRow({ session, isEnding, onEnd }: SessionRowProps) {
  const { userAgent, ipAddress, createdAt, expiresAt, isCurrent } = session
  const isPhone = /\b(?:iPhone|Android)\b/.test(userAgent ?? '')
  const Icon = isPhone ? Smartphone : Laptop
  return (
    <li className="flex items-center gap-3 border-b border-line px-4 py-3 last:border-b-0">
      <Icon className="size-4 shrink-0 text-ink-3" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 font-medium">
          <span className="truncate">{userAgent === null ? 'Unknown browser' : browserName(userAgent)}</span>
          {isCurrent && <Tag>This browser</Tag>}
        </p>
        <p className="text-sm text-ink-2">
          {ipAddress !== null && <span className="num">{ipAddress} · </span>}
          since <Time at={createdAt} /> · until <Time at={expiresAt} />
        </p>
      </div>
      {!isCurrent && (
        <Button small tone="danger" busy={isEnding} onClick={onEnd}>
          Sign out
        </Button>
      )}
    </li>
  )
}
