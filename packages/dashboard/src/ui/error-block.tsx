import { LimitError, PurserError } from '@purser/sdk'
import { CircleAlert } from 'lucide-react'
import { lazy, Suspense } from 'react'
import { isOfRead } from '../api/read-errors.ts'
import { base } from '../api/scope.ts'
import { Button, buttonClasses } from './button.tsx'
import { classes } from './classes.ts'
import { Id } from './values.tsx'

/** An error as a person reads it: a sentence, the remedy, and the id that finds the request in the log. */
export interface ErrorWords {
  readonly sentence: string
  readonly advice: string
  readonly requestId: string | undefined
}

export function errorWords(error: unknown): ErrorWords {
  if (!(error instanceof PurserError))
    return { sentence: 'This part of the page failed.', advice: 'Reload the page.', requestId: undefined }
  const { requestId } = error
  if (isOfRead(error) && (error.status ?? 0) >= 500)
    return {
      sentence: 'The service could not process the request.',
      advice: 'Nothing was changed. Try again in a moment.',
      requestId,
    }
  const faults = error.problem?.errors?.map(({ path, message }) => `${path.slice(1)} ${message}`) ?? []
  const sentence = [error.message, ...faults].join(' ')
  return { sentence, advice: adviceFor(error), requestId }
}

/** The remedies for refusals that a page can get although its buttons allowed the action. */
const adviceByCode: Readonly<Record<string, string>> = {
  'approval-requester-not-allowed': 'No money moved.',
  'approval-own-request': 'No money moved.',
  'approval-not-waiting': 'You changed nothing. “All requests” shows what was decided.',
  'organisation-suspended': 'Nothing was changed.',
  archived: 'The rest of it is unchanged.',
}

/**
 * Whether the request may have taken effect. The sign-in service refuses without a problem record, and its requests
 * are sent once.
 */
function mayHaveTakenEffect({ status, problem, isOutcomeKnown }: PurserError): boolean {
  return !isOutcomeKnown && (problem !== undefined || (status !== undefined && status >= 500))
}

function adviceFor(error: PurserError): string {
  const { status, code } = error
  if (status === undefined) return 'Check the connection, then try again.'
  if (mayHaveTakenEffect(error) && !isOfRead(error)) return adviceInDoubt(error)
  if (code === 'fresh-authentication-required') return 'Nothing was changed. Confirm that it is you.'
  const known = code === undefined ? undefined : adviceByCode[code]
  if (known !== undefined) return known
  if (status === 401) return 'Sign in again.'
  if (status === 403) return 'Your role does not allow this. An owner of the organisation can change it.'
  if (status === 404) return 'It may belong to another organisation, or to the other environment.'
  if (error instanceof LimitError) return 'You have reached a limit of your plan. Nothing was changed.'
  if (status === 429) return 'Wait a moment, then try again.'
  return ''
}

function adviceInDoubt(error: PurserError): string {
  const next = needsFreshSignIn(error)
    ? 'Confirm that it is you: the same request is then sent again.'
    : 'Reload the page before you repeat it.'
  return `The outcome is unknown: the request may have taken effect. ${next}`
}

const FreshSignIn = lazy(async () => ({ default: (await import('../sign-in/fresh-sign-in.tsx')).FreshSignIn }))

function needsFreshSignIn(error: unknown): boolean {
  return error instanceof PurserError && error.code === 'fresh-authentication-required'
}

/** Whether the same request may end otherwise: not where it was refused for what it is. */
function mayRetry(error: unknown): boolean {
  if (!(error instanceof PurserError) || error.status === undefined) return true
  return ![403, 404, 410].includes(error.status) && adviceByCode[error.code ?? ''] === undefined
}

/** Stands where a part of a page would be. The rest of the page stays. What needs a fresh sign-in is repeated after it. */
export function ErrorBlock({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  const { sentence, advice, requestId } = errorWords(error)
  return (
    <div role="alert" className="flex gap-3 rounded-card border border-line bg-failed-soft p-4">
      <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden />
      <div className="min-w-0 flex-1">
        <p className="font-medium text-failed">{sentence}</p>
        {advice !== '' && <p className="mt-0.5 text-ink-2">{advice}</p>}
        {requestId !== undefined && (
          <p className="mt-1.5 flex items-center gap-1 text-sm text-ink-2">
            Request <Id value={requestId} />
          </p>
        )}
        {needsFreshSignIn(error) ? (
          <Suspense>
            <FreshSignIn onDone={onRetry} />
          </Suspense>
        ) : null}
        {error instanceof LimitError && (
          <a href={`${base}/settings/billing`} className={classes(buttonClasses('secondary', 'small'), 'mt-3 mr-2')}>
            See the plan
          </a>
        )}
        {onRetry !== undefined && mayRetry(error) && (
          <Button small className="mt-3" onClick={onRetry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  )
}
