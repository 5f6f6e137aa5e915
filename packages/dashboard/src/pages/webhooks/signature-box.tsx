import { useMutation } from '@tanstack/react-query'
import { CircleCheck, CircleX, Info } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { Field, TextArea, TextInput } from '../../ui/form.tsx'
import type { SentRequest } from './sent-request.ts'

interface Judged {
  /** The header that the service computes with this secret for this body. */
  readonly expected: string
  /** Whether the received signature is authentic; undefined without one. */
  readonly isAuthentic: boolean | undefined
  readonly words: string
}

interface Received {
  readonly secret: string
  readonly signature: string
  readonly body: string
}

/** Explains the signature of a delivery, and verifies in this browser what an endpoint received. Nothing of it is sent anywhere. */
export function SignatureBox({ request, secret: known }: { request: SentRequest; secret: string | undefined }) {
  const [received, setReceived] = useState<Received>({ secret: known ?? '', signature: '', body: request.body })
  const verify = useMutation({ mutationFn: () => judge(request, received), gcTime: 0 })
  const set = (change: Partial<Received>) => {
    verify.reset()
    setReceived({ ...received, ...change })
  }
  return (
    <div className="flex flex-col gap-3">
      <p className="text-ink-2">
        <Code>webhook-signature</Code> contains <Code>v1,</Code> and the base64 of an HMAC-SHA256 of{' '}
        <Code>{'<webhook-id>.<webhook-timestamp>.<raw body>'}</Code>. Its key is the part of the secret after{' '}
        <Code>whsec_</Code>, decoded from base64. <Code>v1a,</Code> precedes a signature by the service’s own key.{' '}
        <Code>unwrap</Code> of <Code>@purser/sdk/webhooks</Code> verifies all of it.
      </p>
      <details className="rounded-card border border-line px-4 py-3" open={known !== undefined}>
        <summary className="cursor-pointer font-medium">Verify a signature here</summary>
        <form
          className="flex flex-col gap-3 pt-3"
          onSubmit={(event) => {
            event.preventDefault()
            verify.mutate()
          }}
        >
          <Field label="Secret of the endpoint" hint="It stays in this page.">
            {(wiring) => (
              <TextInput
                {...wiring}
                type="password"
                className="font-mono"
                placeholder="whsec_…"
                value={received.secret}
                onChange={({ target }) => set({ secret: target.value.trim() })}
              />
            )}
          </Field>
          <Field label="webhook-signature that your endpoint received" hint="Leave it empty to compute it.">
            {(wiring) => (
              <TextInput
                {...wiring}
                className="font-mono"
                placeholder="v1,…"
                value={received.signature}
                onChange={({ target }) => set({ signature: target.value.trim() })}
              />
            )}
          </Field>
          <Field label="Raw body that your endpoint received">
            {(wiring) => (
              <TextArea
                {...wiring}
                className="font-mono text-sm"
                value={received.body}
                onChange={({ target }) => set({ body: target.value })}
              />
            )}
          </Field>
          <span>
            <Button type="submit" busy={verify.isPending} disabled={received.secret === ''}>
              Verify in this browser
            </Button>
          </span>
          <div role="status" className="flex flex-col gap-2">
            {verify.error !== null && <Outcome isAuthentic={false}>{verify.error.message}</Outcome>}
            {verify.data !== undefined && (
              <>
                <Outcome isAuthentic={verify.data.isAuthentic}>{verify.data.words}</Outcome>
                <CodeBlock text={verify.data.expected} label="Copy the signature" />
              </>
            )}
          </div>
        </form>
      </details>
    </div>
  )
}

function Code({ children }: { children: ReactNode }) {
  return <code className="font-mono text-sm break-all text-ink">{children}</code>
}

function Outcome({ isAuthentic, children }: { isAuthentic: boolean | undefined; children: ReactNode }) {
  const [Icon, tone] =
    isAuthentic === undefined
      ? ([Info, 'text-ink-3'] as const)
      : isAuthentic
        ? ([CircleCheck, 'text-settled'] as const)
        : ([CircleX, 'text-failed'] as const)
  return (
    <p className="flex gap-2">
      <Icon className={`mt-0.5 size-4 shrink-0 ${tone}`} aria-hidden /> <span className="min-w-0">{children}</span>
    </p>
  )
}

/** Verifies with the SDK, as of the time of the attempt. Throws a `RangeError` for a malformed secret. */
async function judge({ id, timestamp }: SentRequest, { secret, signature, body }: Received): Promise<Judged> {
  const { testHeaders, unwrap, WebhookVerificationError } = await import('@purser/sdk/webhooks')
  const now = new Date(Number(timestamp) * 1_000)
  const expected = testHeaders(body, secret, { eventId: id, now })['webhook-signature']
  if (signature === '')
    return {
      expected,
      isAuthentic: undefined,
      words: 'With this secret and body the header begins with this signature.',
    }
  try {
    unwrap(body, { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }, secret, { now })
    return {
      expected,
      isAuthentic: true,
      words: 'Authentic: this secret signed this body at the time of this attempt.',
    }
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error
    return { expected, isAuthentic: false, words: `${error.message} This one would be accepted:` }
  }
}
