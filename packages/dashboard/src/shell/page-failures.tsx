import { type ErrorComponentProps, Link } from '@tanstack/react-router'
import { Compass } from 'lucide-react'
import { buttonClasses } from '../ui/button.tsx'
import { ErrorBlock } from '../ui/error-block.tsx'
import { Empty } from '../ui/page.tsx'

export function PageFailed({ error, reset }: ErrorComponentProps) {
  return (
    <div className="mx-auto max-w-180 p-6">
      <ErrorBlock error={error} onRetry={reset} />
    </div>
  )
}

export function PageNotFound() {
  return (
    <Empty
      icon={<Compass />}
      title="There is no page at this address"
      action={
        <Link to="/" className={buttonClasses('primary')}>
          Go to Home
        </Link>
      }
    >
      The address may be mistyped, or it belongs to something that was removed.
    </Empty>
  )
}
