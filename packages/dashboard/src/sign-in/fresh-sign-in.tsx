import { KeyRound } from 'lucide-react'
import { type FormEvent, useState } from 'react'
import { useWorkspace } from '../api/context.ts'
import { signInAgain } from '../api/scope.ts'
import { Button } from '../ui/button.tsx'
import { Field, TextInput } from '../ui/form.tsx'
import { signInWithPasskey, signInWithPassword } from './auth.ts'

/** Lets a signed-in person sign in again without leaving the page; then repeats the refused action. */
export function FreshSignIn({ onDone }: { onDone: (() => void) | undefined }) {
  const { email } = useWorkspace().account
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState<'passkey' | 'password'>()
  const [state, setState] = useState<'open' | 'failed' | 'done'>('open')
  const attempt = async (way: 'passkey' | 'password', work: () => Promise<void>) => {
    setBusy(way)
    try {
      await work()
      setState('done')
      onDone?.()
    } catch {
      setState('failed')
    } finally {
      setBusy(undefined)
    }
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    event.stopPropagation()
    void attempt('password', () => signInWithPassword(email, password))
  }
  if (state === 'done')
    return (
      <p role="status" className="mt-3 font-medium">
        You are signed in again.{onDone === undefined && ' Repeat what you were doing.'}
      </p>
    )
  return (
    <div className="mt-3 flex flex-col gap-3">
      <Button busy={busy === 'passkey'} onClick={() => attempt('passkey', signInWithPasskey)}>
        <KeyRound aria-hidden /> Confirm with a passkey
      </Button>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <div className="min-w-40 flex-1">
          <Field label={`Password of ${email}`}>
            {(wiring) => (
              <TextInput
                {...wiring}
                type="password"
                autoComplete="current-password"
                value={password}
                onChange={({ target }) => setPassword(target.value)}
              />
            )}
          </Field>
        </div>
        <Button type="submit" busy={busy === 'password'} disabled={password === ''}>
          Confirm
        </Button>
      </form>
      {state === 'failed' && (
        <p role="alert" className="text-failed">
          That did not sign you in. Try again.
        </p>
      )}
      <p className="text-sm text-ink-2">
        With neither,{' '}
        <a className="text-accent-text underline" href={signInAgain()}>
          sign in by a new link
        </a>
        . An operator makes one with <code className="font-mono">purser admin sign-in-link</code>.
      </p>
    </div>
  )
}
