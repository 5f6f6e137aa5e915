import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useMay, usePurser } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { CheckChoice, Field, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { eventTypesQuery } from '../events/queries.ts'
import { webhooksKey } from './queries.ts'
import { keepSecret } from './revealed-secret.ts'
import { WebhookSecret } from './webhook-secret.tsx'

/** Opens the sheet that registers an endpoint. Only admins and owners see the button. */
export function NewWebhookButton({ onOpen }: { onOpen: () => void }) {
  if (!useMay('admin')) return null
  return (
    <Button tone="primary" onClick={onOpen}>
      <Plus aria-hidden /> Add an endpoint
    </Button>
  )
}

/**
 * Registers an endpoint and shows its secret once. The page renders it, not the button: the button of an empty list disappears with the first
 * endpoint.
 */
export function NewWebhookSheet({ onClose }: { onClose: () => void }) {
  const purser = usePurser()
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { key, onError } = useIdempotencyKey()
  const [url, setUrl] = useState('')
  const [chosen, setChosen] = useState<readonly string[]>(['*'])
  const create = useMutation({
    mutationFn: () =>
      purser.webhooks.create(
        { url, events: [...chosen] as Parameters<typeof purser.webhooks.create>[0]['events'] },
        { idempotencyKey: key },
      ),
    onError,
    onSuccess: ({ id, secret }) => {
      keepSecret(queries, id, secret)
      return queries.invalidateQueries({ queryKey: webhooksKey })
    },
  })
  const { data } = create
  const isReadable = /^https?:\/\/./.test(url)
  return (
    <Sheet
      open
      onClose={onClose}
      title="Add an endpoint"
      footer={
        data === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button
              tone="primary"
              busy={create.isPending}
              disabled={!isReadable || chosen.length === 0}
              onClick={() => create.mutate()}
            >
              Add the endpoint
            </Button>
          </>
        ) : (
          <Button
            tone="primary"
            onClick={() => {
              onClose()
              void navigate({ to: '/webhooks/$webhookId', params: { webhookId: data.id } })
            }}
          >
            I saved the secret
          </Button>
        )
      }
    >
      {data === undefined ? (
        <div className="flex flex-col gap-4">
          <Field
            label="Address"
            hint="It receives a signed POST for each event and must return 2xx."
            fault={url === '' || isReadable ? undefined : 'An address begins with https://.'}
          >
            {(wiring) => (
              <TextInput
                {...wiring}
                type="url"
                placeholder="https://example.com/webhooks"
                value={url}
                onChange={({ target }) => setUrl(target.value.trim())}
              />
            )}
          </Field>
          <EventChoice chosen={chosen} onChange={setChosen} />
          {create.error !== null && <ErrorBlock error={create.error} onRetry={() => create.mutate()} />}
        </div>
      ) : (
        <WebhookSecret secret={data.secret} />
      )}
    </Sheet>
  )
}

interface ChoiceProps {
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
}

function EventChoice({ chosen, onChange }: ChoiceProps) {
  const types = useQuery(eventTypesQuery(usePurser()))
  const isAll = chosen.includes('*')
  const toggle = (type: string) =>
    onChange(chosen.includes(type) ? chosen.filter((one) => one !== type) : [...chosen, type])
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-sm font-medium">Events</legend>
      <CheckChoice
        label="Every event, also of types that are added later"
        isOn={isAll}
        onToggle={() => onChange(isAll ? [] : ['*'])}
      />
      {!isAll &&
        (types.data === undefined ? (
          types.error === null ? (
            <Skeleton lines={4} />
          ) : (
            <ErrorBlock error={types.error} />
          )
        ) : (
          <div className="grid gap-2 sm:grid-cols-2">
            {types.data.map(({ type }) => (
              <CheckChoice key={type} label={type} isOn={chosen.includes(type)} onToggle={() => toggle(type)} mono />
            ))}
          </div>
        ))}
    </fieldset>
  )
}
