import type { VaultEvent, VaultState } from '@purser/sdk'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { middleTruncate } from '../../ui/format.ts'
import { Card } from '../../ui/page.tsx'
import { Tag } from '../../ui/state.tsx'
import { Time } from '../../ui/values.tsx'
import { streamEventsMax, useVaultStream } from './use-vault-stream.ts'

const payloadTextMax = 600

/** The live events of the vault, newest first. */
export function VaultStream({ vault }: { vault: VaultState }) {
  const { events, status, error } = useVaultStream(vault)
  return (
    <Card title={status === 'ended' ? 'Events' : 'Live stream'} aside={<Tag>{statusWords[status]}</Tag>} flush>
      {error !== undefined && (
        <div className="p-4">
          <ErrorBlock error={error} />
        </div>
      )}
      {events.length === 0 && error === undefined && <p className="p-4 text-ink-2">{emptyWords[status]}</p>}
      {events.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard must be able to scroll it
        <ol tabIndex={0} aria-label="Events, newest first" className="max-h-120 overflow-y-auto">
          {events.toReversed().map((event) => (
            <EventRow key={event.eventId} event={event} />
          ))}
        </ol>
      )}
      {events.length === streamEventsMax && (
        <p className="border-t border-line px-4 py-2 text-sm text-ink-3">The newest {streamEventsMax} are shown.</p>
      )}
    </Card>
  )
}

const emptyWords = {
  connecting: 'Loading past events.',
  live: 'Waiting for the first event.',
  ended: 'This vault has no events.',
} as const

const statusWords = { connecting: 'Connecting', live: 'Live', ended: 'Ended' } as const

/** A hash in a payload. The document that it is of has all of it. */
const hash = /\b[0-9a-f]{64}\b/g

/** A payload on one line, with spaces between the members, so that lines break there and not inside a name. */
export function payloadText({ vaultId: _, ...rest }: VaultEvent['payload']): string {
  return JSON.stringify(rest, null, 1)
    .replaceAll(/\n */g, ' ')
    .replaceAll(hash, (one) => middleTruncate(one))
}

function EventRow({ event: { type, timestamp, payload } }: { event: VaultEvent }) {
  const text = payloadText(payload)
  return (
    <li className="border-b border-line px-4 py-2 last:border-b-0">
      <p className="flex items-baseline justify-between gap-3">
        <span className="min-w-0 font-mono text-sm break-words">{type}</span>
        <span className="shrink-0 text-sm text-ink-3">
          <Time at={timestamp} />
        </span>
      </p>
      {text !== '{}' && (
        <p className="mt-0.5 font-mono text-xs wrap-anywhere text-ink-2">
          {text.length > payloadTextMax ? `${text.slice(0, payloadTextMax)}…` : text}
        </p>
      )}
    </li>
  )
}
