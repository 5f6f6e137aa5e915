import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import type { ReactNode } from 'react'

interface BackLinkProps {
  readonly to: string
  readonly search?: Readonly<Record<string, string>>
  readonly list: string
}

/** A detail on a page of its own, with the way back to its list. */
export function DetailPage({ children, ...back }: BackLinkProps & { children: ReactNode }) {
  return (
    <div className="w-full max-w-320 px-4 pt-5 pb-16 sm:px-8">
      <BackLink {...back} />
      {children}
    </div>
  )
}

/** The way back, above a page's title. */
export function BackLink({ to, search = {}, list }: BackLinkProps) {
  return (
    <Link
      to={to}
      search={search}
      className="mb-4 inline-flex max-w-full items-center gap-1.5 text-ink-2 hover:text-ink"
    >
      <ArrowLeft className="size-4 shrink-0" aria-hidden /> <span className="truncate">{list}</span>
    </Link>
  )
}
