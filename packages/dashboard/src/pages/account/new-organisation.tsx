import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { sessionClient } from '../../api/context.ts'
import { base, rememberOrganisation } from '../../api/scope.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { useIdempotencyKey } from '../../ui/idempotency.ts'
import { Card } from '../../ui/page.tsx'
import { SecretOnce } from '../../ui/secret-once.tsx'

/** The key of the creation, which stays in the cache while its result is shown. */
export const newOrganisation = ['new-organisation'] as const

/** Creates an organisation of the person, shows its first key once, and then opens it. */
export function NewOrganisation() {
  const { key, onError } = useIdempotencyKey()
  const [name, setName] = useState('')
  const make = useMutation({
    mutationKey: newOrganisation,
    mutationFn: () =>
      sessionClient(undefined, undefined).organisations.create({ name: name.trim() }, { idempotencyKey: key }),
    // The key is discarded when the page is left.
    gcTime: 0,
    onError,
  })
  const { data } = make
  if (data !== undefined)
    return (
      <Card title={data.name}>
        <div className="flex flex-col gap-4">
          {data.apiKeys.map((made) => (
            <SecretOnce key={made.id} secret={made.key} what="key">
              The first test key. Anyone who has it can use it. Keep it in the settings of your server, and out of code
              and browsers.
            </SecretOnce>
          ))}
          <Button
            tone="primary"
            className="self-start"
            onClick={() => {
              rememberOrganisation(data.id)
              location.assign(`${base}/test`)
            }}
          >
            Open the organisation
          </Button>
        </div>
      </Card>
    )
  return (
    <Card title="Create an organisation">
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          make.mutate()
        }}
      >
        <Field label="Name" hint="You become its owner. It is on the hobby plan.">
          {(wiring) => (
            <TextInput {...wiring} maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
          )}
        </Field>
        {make.error !== null && <ErrorBlock error={make.error} onRetry={() => make.mutate()} />}
        <Button type="submit" tone="primary" className="self-start" busy={make.isPending} disabled={name.trim() === ''}>
          Create the organisation
        </Button>
      </form>
    </Card>
  )
}
