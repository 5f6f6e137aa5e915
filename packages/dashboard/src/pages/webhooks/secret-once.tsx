import { CodeBlock } from '../../ui/code-block.tsx'

/** A secret that no later answer shows. */
export function SecretOnce({ secret }: { secret: string }) {
  return (
    <div role="status" className="flex flex-col gap-3 rounded-card border border-line bg-settled-soft p-4">
      <p className="font-medium">This secret is shown once. Copy it now.</p>
      <CodeBlock text={secret} label="Copy the secret" />
      <p className="text-ink-2">
        Your endpoint verifies each delivery with it: <code className="font-mono text-sm">unwrap</code> of{' '}
        <code className="font-mono text-sm">@purser/sdk/webhooks</code>.
      </p>
    </div>
  )
}
