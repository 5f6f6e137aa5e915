import { PurserError } from '@purser/sdk'
import { Building2, KeyRound } from 'lucide-react'
import { type FormEvent, useEffect, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { Field, TextInput } from '../ui/form.tsx'
import { sentenceCase } from '../ui/format.ts'
import {
  afterSignIn,
  issuerUrl,
  type SignInMethods,
  sendLink,
  signInMethods,
  signInWithPasskey,
  signInWithPassword,
} from './auth.ts'

type Act = 'password' | 'link' | 'passkey' | `issuer ${string}`

/** Sign-in by passkey, password or link. The reason why a link was refused is shown above. */
export function SignInPage() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [busy, setBusy] = useState<Act>()
  const [fault, setFault] = useState(() => linkFault(location.search))
  const [isSent, setSent] = useState(false)
  const [methods, setMethods] = useState<SignInMethods>()
  useEffect(() => {
    signInMethods().then(setMethods, () => setMethods(undefined))
  }, [])
  const attempt = async (act: Act, work: () => Promise<void>) => {
    setBusy(act)
    setFault(undefined)
    try {
      await work()
    } catch (error) {
      setFault(faultWords(error, act))
    } finally {
      setBusy(undefined)
    }
  }
  const enter = (work: () => Promise<void>) => async () => {
    await work()
    location.assign(afterSignIn(location.search))
  }
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void attempt(
      'password',
      enter(() => signInWithPassword(email, password)),
    )
  }
  return (
    <main className="flex min-h-dvh items-center justify-center p-4">
      <div className="w-full max-w-90">
        <div className="mb-6 flex items-center gap-3">
          <img src="/dashboard/icon.svg" alt="" className="size-9" />
          <h1 className="text-xl font-semibold tracking-tight">Sign in to Purser</h1>
        </div>
        {fault !== undefined && (
          <p role="alert" className="mb-4 rounded-control bg-failed-soft px-3 py-2 text-failed">
            {fault}
          </p>
        )}
        {isSent && (
          <p role="status" className="mb-4 rounded-control bg-settled-soft px-3 py-2 text-settled">
            If {email} has an account, a link is on its way, or came within the last five minutes and still works. It
            works once, for ten minutes.
          </p>
        )}
        <div className="flex flex-col gap-4 rounded-card border border-line bg-surface p-5">
          <Button busy={busy === 'passkey'} onClick={() => attempt('passkey', enter(signInWithPasskey))}>
            <KeyRound aria-hidden /> Sign in with a passkey
          </Button>
          {methods?.issuers.map((issuer) => (
            <Button
              key={issuer}
              busy={busy === `issuer ${issuer}`}
              onClick={() =>
                attempt(`issuer ${issuer}`, async () =>
                  location.assign(await issuerUrl(issuer, afterSignIn(location.search))),
                )
              }
            >
              <Building2 aria-hidden /> Sign in with {sentenceCase(issuer)}
            </Button>
          ))}
          <p className="flex items-center gap-3 text-sm text-ink-3 before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
            or
          </p>
          <form onSubmit={submit} className="flex flex-col gap-3">
            <Field label="Email">
              {(wiring) => (
                <TextInput
                  {...wiring}
                  type="email"
                  required
                  autoComplete="username webauthn"
                  value={email}
                  onChange={(event) => setEmail(event.target.value)}
                />
              )}
            </Field>
            <Field label="Password">
              {(wiring) => (
                <TextInput
                  {...wiring}
                  type="password"
                  required
                  autoComplete="current-password"
                  value={password}
                  onChange={(event) => setPassword(event.target.value)}
                />
              )}
            </Field>
            <Button type="submit" tone="primary" busy={busy === 'password'} className="mt-1">
              Sign in
            </Button>
          </form>
          {methods?.sendsLinks === true && (
            <Button
              tone="ghost"
              busy={busy === 'link'}
              disabled={email === ''}
              onClick={() =>
                attempt('link', async () => {
                  await sendLink(email)
                  setSent(true)
                })
              }
            >
              Email me a link instead
            </Button>
          )}
        </div>
        <p className="mt-4 text-sm text-ink-3">
          No passkey or password yet? Your sign-in link is in the terminal of{' '}
          <code className="font-mono whitespace-nowrap">npm start</code>, or an operator makes one with{' '}
          <code className="font-mono whitespace-nowrap">purser admin sign-in-link</code>.
        </p>
      </div>
    </main>
  )
}

/** Describes the fault of the link or the issuer that led here; undefined if there is none. */
function linkFault(search: string): string | undefined {
  const error = new URLSearchParams(search).get('error')
  if (error === null) return undefined
  if (error !== 'link-not-valid')
    return 'You were not signed in. Your organisation must know your address, and the issuer must have verified it.'
  return 'This link was used already or is older than ten minutes. Ask for a new one.'
}

function faultWords(error: unknown, act: Act): string {
  if (error instanceof DOMException) return 'No passkey was used. Try again, or sign in another way.'
  if (!(error instanceof PurserError) || error.status === undefined) return 'The service does not respond. Try again.'
  if (error.status === 429) return 'Too many attempts. Wait a minute, then try again.'
  if (act === 'link') return 'This service sends no email. Ask an operator for a link.'
  if (act.startsWith('issuer')) return 'This identity provider does not respond. Try again, or sign in another way.'
  if (act === 'passkey') return 'This passkey is not known here. Sign in another way.'
  return 'The email or the password is wrong.'
}
