import { PurserError } from '@purser/sdk'
import { useState } from 'react'
import { base } from '../api/scope.ts'
import { NewPasswordField } from '../pages/account/password.tsx'
import { Button, buttonClasses } from '../ui/button.tsx'
import { ErrorBlock } from '../ui/error-block.tsx'
import { choosePassword, passwordLength } from './credentials.ts'

type Outcome = 'chosen' | 'refused'

/** The page that the link by email opens. Its token is removed from the address at once, and works once. */
export function ChoosePasswordPage({ token }: { token: string | undefined }) {
  const [password, setPassword] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome | undefined>(token === undefined ? 'refused' : undefined)
  const [error, setError] = useState<unknown>()
  const choose = async () => {
    if (token === undefined) return
    setBusy(true)
    setError(undefined)
    try {
      await choosePassword(token, password)
      setOutcome('chosen')
    } catch (caught) {
      // 400 is the refusal of the token. The link still works after a rate limit or a lost connection.
      if (caught instanceof PurserError && caught.status === 400) setOutcome('refused')
      else setError(caught)
    }
    setBusy(false)
  }
  return (
    <main className="flex min-h-dvh items-center justify-center p-4">
      <div className="w-full max-w-90">
        <h1 className="mb-6 text-xl font-semibold tracking-tight">Choose a password</h1>
        <div className="flex flex-col gap-4 rounded-card border border-line bg-surface p-5">
          {outcome === undefined ? (
            <form
              className="flex flex-col gap-4"
              onSubmit={(event) => {
                event.preventDefault()
                void choose()
              }}
            >
              {error !== undefined && <ErrorBlock error={error} />}
              <NewPasswordField label="New password" value={password} onChange={setPassword} />
              <Button type="submit" tone="primary" busy={isBusy} disabled={password.length < passwordLength.min}>
                Choose this password
              </Button>
            </form>
          ) : (
            <>
              <p role="status">
                {outcome === 'chosen'
                  ? 'Your password is set. All your sessions are signed out.'
                  : 'This link was used already or is older than an hour. Request a new one on your account page.'}
              </p>
              <a href={`${base}/sign-in`} className={buttonClasses('primary')}>
                Sign in
              </a>
            </>
          )}
        </div>
      </div>
    </main>
  )
}
