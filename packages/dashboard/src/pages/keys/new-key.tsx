import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { CheckChoice, Field, Select, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Sheet } from '../../ui/overlay.tsx'
import { SecretOnce } from '../../ui/secret-once.tsx'
import { endOf, type KeyScope, keysKey, lifetimes, scopeWords } from './key-words.ts'

/** Opens the sheet that creates a key. Only admins and owners see the button. */
export function NewKeyButton({ onOpen }: { onOpen: () => void }) {
  const { environment } = useWorkspace()
  if (!useMay('admin')) return null
  return (
    <Button tone="primary" onClick={onOpen}>
      <Plus aria-hidden /> Create a {environment} key
    </Button>
  )
}

/** Makes a key and shows it once. The page renders it, not the button: the button of an empty list disappears with the first key. */
export function NewKeySheet({ onClose }: { onClose: () => void }) {
  const { purser, environment } = useWorkspace()
  const queries = useQueryClient()
  const { key, onError } = useIdempotencyKey()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<readonly KeyScope[] | null>(null)
  const [lifetime, setLifetime] = useState<Lifetime>({ index: 0, expiresAt: undefined })
  const make = useMutation({
    mutationFn: () => {
      const { expiresAt } = lifetime
      const limits = { ...(scopes !== null && { scopes: [...scopes] }), ...(expiresAt !== undefined && { expiresAt }) }
      return purser.organisations.apiKeys.create({ name: name.trim(), environment, ...limits }, { idempotencyKey: key })
    },
    // The value is discarded when the sheet is closed.
    gcTime: 0,
    onError,
    onSuccess: () => queries.invalidateQueries({ queryKey: keysKey }),
  })
  const { data } = make
  const isReady = name.trim() !== '' && scopes?.length !== 0
  return (
    <Sheet
      open
      onClose={onClose}
      title={`Create a ${environment} key`}
      footer={
        data === undefined ? (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" form="new-key" tone="primary" busy={make.isPending} disabled={!isReady}>
              Create the key
            </Button>
          </>
        ) : (
          <Button tone="primary" onClick={onClose}>
            I saved the key
          </Button>
        )
      }
    >
      {data === undefined ? (
        <form
          id="new-key"
          className="flex flex-col gap-5"
          onSubmit={(event) => {
            event.preventDefault()
            make.mutate()
          }}
        >
          {environment === 'live' && (
            <p className="rounded-control bg-held-soft px-3 py-2 text-held">
              A live key moves real money. Give it no more than it needs, and keep it on a server.
            </p>
          )}
          <Field label="Name" hint="What uses the key, such as the server or the agent.">
            {(wiring) => (
              <TextInput
                {...wiring}
                maxLength={200}
                placeholder="Forecast server"
                value={name}
                onChange={({ target }) => setName(target.value)}
              />
            )}
          </Field>
          <ScopeChoice chosen={scopes} onChange={setScopes} />
          <Field label="Valid for">
            {(wiring) => (
              <Select
                {...wiring}
                value={lifetime.index}
                onChange={({ target }) => setLifetime(lifetimeAt(Number(target.value)))}
              >
                {lifetimes.map(({ label }, index) => (
                  <option key={label} value={index}>
                    {label}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          {make.error !== null && <ErrorBlock error={make.error} onRetry={() => make.mutate()} />}
        </form>
      ) : (
        <SecretOnce secret={data.key} what="key">
          Anyone who has it can use it. Keep it in the settings of your server, and out of code and browsers.
        </SecretOnce>
      )}
    </Sheet>
  )
}

/** A chosen lifetime. Its end stays the same in each press, because they share an Idempotency-Key. */
interface Lifetime {
  readonly index: number
  readonly expiresAt: string | undefined
}

function lifetimeAt(index: number): Lifetime {
  return { index, expiresAt: endOf(lifetimes[index]?.days, new Date()) }
}

interface ScopeChoiceProps {
  /** None for everything. */
  readonly chosen: readonly KeyScope[] | null
  readonly onChange: (chosen: readonly KeyScope[] | null) => void
}

function ScopeChoice({ chosen, onChange }: ScopeChoiceProps) {
  const toggle = (scope: KeyScope) =>
    onChange(chosen?.includes(scope) ? chosen.filter((one) => one !== scope) : [...(chosen ?? []), scope])
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="mb-1 text-sm font-medium">Permissions</legend>
      <CheckChoice
        label="Everything"
        isOn={chosen === null}
        onToggle={() => onChange(chosen === null ? ['read', 'payments'] : null)}
      />
      {chosen !== null &&
        scopeWords.map(({ scope, allows }) => (
          <CheckChoice key={scope} label={allows} isOn={chosen.includes(scope)} onToggle={() => toggle(scope)} />
        ))}
    </fieldset>
  )
}
