import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { signInMethods } from '../../sign-in/auth.ts'
import { changePassword, passwordLength, sendPasswordLink } from '../../sign-in/credentials.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Field, TextInput } from '../../ui/form.tsx'
import { Card, Skeleton } from '../../ui/page.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { passwordQuery } from './queries.ts'

/** Changes the password of the person, or sends an email link to choose a first one. */
export function PasswordCard({ email }: { email: string }) {
  const password = useQuery(passwordQuery)
  const links = useQuery({ queryKey: ['sign-in-methods'], queryFn: signInMethods })
  return (
    <Card title="Password">
      {password.error !== null ? (
        <ErrorBlock error={password.error} onRetry={() => password.refetch()} />
      ) : password.data === undefined || links.isPending ? (
        <Skeleton lines={2} />
      ) : password.data ? (
        <ChangeForm email={email} />
      ) : (
        <NoPassword email={email} sendsLinks={links.data?.sendsLinks === true} />
      )}
    </Card>
  )
}

function NoPassword({ email, sendsLinks }: { email: string; sendsLinks: boolean }) {
  const send = useMutation({
    mutationFn: () => sendPasswordLink(email),
    onSuccess: () => toastDone('The link is on its way', `It goes to ${email} and works once, for an hour.`),
    onError: toastFailed,
  })
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
      <p className="min-w-0 flex-1 basis-64 text-ink-2">
        You have no password. A passkey or a link by email signs you in.
        {!sendsLinks && ' This service sends no email, so you cannot choose a password.'}
      </p>
      {sendsLinks && (
        <Button busy={send.isPending} onClick={() => send.mutate()}>
          Email me a link to choose one
        </Button>
      )}
    </div>
  )
}

function ChangeForm({ email }: { email: string }) {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const change = useMutation({
    mutationFn: () => changePassword(current, next),
    onSuccess: () => {
      toastDone('The password is changed', 'All other sessions ended.')
      setCurrent('')
      setNext('')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <input type="text" autoComplete="username" value={email} readOnly hidden />
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="Current password">
          {(wiring) => (
            <TextInput
              {...wiring}
              type="password"
              autoComplete="current-password"
              value={current}
              onChange={({ target }) => setCurrent(target.value)}
            />
          )}
        </Field>
        <NewPasswordField label="New password" value={next} onChange={setNext} />
      </div>
      {change.error !== null && <ErrorBlock error={change.error} onRetry={() => change.mutate()} />}
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="text-sm text-ink-3">All other sessions end with it.</p>
        <Button type="submit" busy={change.isPending} disabled={current === '' || next.length < passwordLength.min}>
          Change the password
        </Button>
      </div>
    </form>
  )
}

/** The field for a new password, with its minimum length. */
export function NewPasswordField({
  label,
  value,
  onChange,
}: {
  label: string
  value: string
  onChange: (value: string) => void
}) {
  return (
    <Field label={label} hint={`At least ${passwordLength.min} characters. A whole sentence makes a good password.`}>
      {(wiring) => (
        <TextInput
          {...wiring}
          type="password"
          autoComplete="new-password"
          maxLength={passwordLength.max}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  )
}
