import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button, buttonClasses } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { sentenceCase } from '../../ui/format.ts'
import { Card, Fact, Facts, Page, Skeleton } from '../../ui/page.tsx'
import { toastDone } from '../../ui/toast.tsx'
import { Id, Time } from '../../ui/values.tsx'
import { oneOfRole } from '../team/team-words.ts'
import { DeleteOrganisation } from './delete-organisation.tsx'

const organisationKey = ['organisation'] as const

/** The name and the ids of the organisation, and links to its other settings. */
export function SettingsPage() {
  const { purser, organisation, environment } = useWorkspace()
  const isOwner = useMay('owner')
  const current = useQuery({
    queryKey: organisationKey,
    queryFn: ({ signal }) => purser.organisations.current({ signal }),
  })
  return (
    <Page title="Settings" state={`You are ${oneOfRole(organisation.role)} of ${organisation.name}.`}>
      <div className="flex max-w-190 flex-col gap-5">
        {current.error !== null ? (
          <ErrorBlock error={current.error} onRetry={() => current.refetch()} />
        ) : (
          <>
            <Card title="Organisation">
              {current.data === undefined ? <Skeleton lines={3} /> : <NameForm name={current.data.name} />}
            </Card>
            <Card title="Details">
              {current.data === undefined ? (
                <Skeleton lines={4} />
              ) : (
                <Facts>
                  <Fact name="Organisation">
                    <Id value={current.data.id} whole />
                  </Fact>
                  <Fact name="Type">{sentenceCase(current.data.type)}</Fact>
                  <Fact name="Created">
                    <Time at={current.data.createdAt} full />
                  </Fact>
                  <Fact name="Environment">{sentenceCase(environment)}</Fact>
                  <Fact name="API">
                    <span className="font-mono text-sm break-all">{location.origin}</span>
                  </Fact>
                </Facts>
              )}
            </Card>
            <Card
              title="Plan"
              aside={
                <Link to="/settings/billing" className={buttonClasses('secondary', 'small')}>
                  Limits and upgrade
                </Link>
              }
            >
              {current.data === undefined ? (
                <Skeleton lines={1} />
              ) : (
                <p>
                  <span className="font-medium">{sentenceCase(current.data.plan)}</span>{' '}
                  <span className="text-ink-2">for both environments; each is counted by itself.</span>
                </p>
              )}
            </Card>
            {isOwner && <DeleteOrganisation />}
          </>
        )}
      </div>
    </Page>
  )
}

function NameForm({ name: saved }: { name: string }) {
  const { purser } = useWorkspace()
  const mayRename = useMay('admin')
  const queries = useQueryClient()
  const [name, setName] = useState(saved)
  const rename = useMutation({
    mutationFn: () => purser.organisations.update({ name: name.trim() }),
    onSuccess: (organisation) => {
      toastDone(`The organisation is called ${organisation.name} now`)
      queries.setQueryData(organisationKey, organisation)
      void queries.invalidateQueries({ queryKey: ['account'] })
    },
  })
  return (
    <form
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault()
        rename.mutate()
      }}
    >
      <Field label="Name" hint={mayRename ? 'Invitations and this dashboard show it.' : 'An admin can change it.'}>
        {(wiring) => (
          <TextInput
            {...wiring}
            className="sm:max-w-96"
            maxLength={200}
            disabled={!mayRename}
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      {rename.error !== null && <ErrorBlock error={rename.error} />}
      {mayRename && (
        <div>
          <Button type="submit" busy={rename.isPending} disabled={name.trim() === '' || name.trim() === saved}>
            Save the name
          </Button>
        </div>
      )}
    </form>
  )
}
