import type { WebhookAttempt } from '@purser/sdk'
import { useQuery } from '@tanstack/react-query'
import { usePurser } from '../../api/context.ts'
import { CodeBlock, readable } from '../../ui/code-block.tsx'
import { ErrorBlock } from '../../ui/error-block.tsx'
import { Skeleton } from '../../ui/page.tsx'
import { eventQuery } from '../events/queries.ts'
import { useRevealedSecret } from './revealed-secret.ts'
import { type SentRequest, sentRequest } from './sent-request.ts'
import { SignatureBox } from './signature-box.tsx'

/** The headers and the body that an attempt sent, how they are signed, and a place to verify that. */
export function SentSection({ attempt, webhookId }: { attempt: WebhookAttempt; webhookId: string }) {
  const { data, error } = useQuery(eventQuery(usePurser(), attempt.eventId))
  const secret = useRevealedSecret(webhookId)
  if (data === undefined) return error === null ? <Skeleton lines={6} /> : <ErrorBlock error={error} />
  const request = sentRequest(attempt, data)
  return (
    <>
      <CodeBlock text={headerText(request)} label="Copy the headers" />
      <CodeBlock text={readable(request.body)} label="Copy the body" />
      <h3 className="mt-3 font-medium">Signature</h3>
      <SignatureBox key={`${attempt.id} ${secret ?? ''}`} request={request} secret={secret} />
    </>
  )
}

/** The headers of a delivery; signatures need the secret, which nobody can read later. */
function headerText({ id, timestamp }: SentRequest): string {
  return [
    'content-type: application/json',
    'user-agent: Purser-Webhooks/1.0',
    `webhook-id: ${id}`,
    `webhook-timestamp: ${timestamp}`,
    'webhook-signature: v1,… v1a,…',
    `x-service-timestamp: ${timestamp}`,
    'x-service-signature: sha256=…',
  ].join('\n')
}
