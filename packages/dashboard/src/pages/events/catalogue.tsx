import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { FlaskConical } from 'lucide-react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { eventsKey, eventTypesQuery } from './queries.ts'

const route = getRouteApi('/shell/events')

/** Every type of event, and a sample of the one that is chosen. */
export function Catalogue() {
  const { purser } = useWorkspace()
  const { type: wanted } = route.useSearch()
  const types = useQuery(eventTypesQuery(purser))
  if (types.data === undefined)
    return types.error === null ? (
      <Skeleton lines={9} />
    ) : (
      <ErrorBlock error={types.error} onRetry={() => types.refetch()} />
    )
  const chosen = types.data.find(({ type }) => type === wanted) ?? types.data[0]
  return (
    <div className="grid items-start gap-5 lg:grid-cols-side-main">
      <nav
        aria-label="Types of events"
        className="max-h-80 overflow-y-auto rounded-card border border-line bg-surface p-1.5 lg:max-h-none"
      >
        {types.data.map(({ type }) => (
          <Link
            key={type}
            to="/events"
            search={{ view: 'types', type }}
            resetScroll={false}
            aria-current={type === chosen?.type ? 'page' : undefined}
            className={`block rounded-control px-2.5 py-1.5 font-mono text-sm break-all ${type === chosen?.type ? 'bg-well font-medium' : 'text-ink-2 hover:bg-well/60'}`}
          >
            {type}
          </Link>
        ))}
      </nav>
      {chosen !== undefined && (
        <Card
          title={<span className="font-mono text-sm break-all">{chosen.type}</span>}
          aside={<SampleButton type={chosen.type} />}
        >
          <p className="mb-4">
            <Marked text={chosen.description} />
          </p>
          <CodeBlock text={JSON.stringify(chosen.payload, null, 2)} label="Copy the sample" tall />
          <dl className="mt-4 divide-y divide-line border-t border-line">
            {chosen.members.map(({ name, type, nullable, description }) => (
              <div key={name} className="grid gap-x-4 py-2 sm:grid-cols-side-main">
                <dt className="break-all">
                  <span className="font-mono text-sm">{name}</span>{' '}
                  <span className="text-sm text-ink-2">{nullable ? `${type} or null` : type}</span>
                </dt>
                <dd className="text-ink-2">
                  <Marked text={description} />
                </dd>
              </div>
            ))}
          </dl>
        </Card>
      )}
    </div>
  )
}

/** Renders a description of the catalogue: text between backticks is code. */
function Marked({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never change their order
      <code key={index} className="font-mono text-sm">
        {part}
      </code>
    ),
  )
}

/** Sends a sample event of the type to every webhook and listener. Test environment only. */
function SampleButton({ type }: { type: string }) {
  const { purser, environment } = useWorkspace()
  const maySend = useMay('member')
  const queries = useQueryClient()
  const send = useMutation({
    mutationFn: () => purser.events.trigger({ type } as Parameters<typeof purser.events.trigger>[0]),
    onSuccess: () => {
      toastDone(`A sample ${type} event was sent`)
      void queries.invalidateQueries({ queryKey: [...eventsKey, 'list'] })
    },
    onError: toastFailed,
  })
  if (environment !== 'test' || !maySend) return null
  return (
    <Button small busy={send.isPending} onClick={() => send.mutate()}>
      <FlaskConical aria-hidden /> Send this sample
    </Button>
  )
}
