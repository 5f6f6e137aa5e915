import { SecretOnce } from '../../ui/secret-once.tsx'

/** The secret with which an endpoint verifies its deliveries. */
export function WebhookSecret({ secret }: { secret: string }) {
  return (
    <SecretOnce secret={secret}>
      Your endpoint verifies each delivery with it: <code className="font-mono text-sm">unwrap</code> of{' '}
      <code className="font-mono text-sm">@purser/sdk/webhooks</code>.
    </SecretOnce>
  )
}
