import type { ReactNode } from 'react'
import { CodeBlock } from './code-block.tsx'

/** A secret that is shown only once, and its purpose. */
export function SecretOnce({
  secret,
  what = 'secret',
  children,
}: {
  secret: string
  what?: string
  children: ReactNode
}) {
  return (
    <div role="status" className="flex flex-col gap-3 rounded-card border border-line bg-settled-soft p-4">
      <p className="font-medium">This {what} is shown once. Copy it now.</p>
      <CodeBlock text={secret} label={`Copy the ${what}`} />
      <p className="text-ink-2">{children}</p>
    </div>
  )
}
