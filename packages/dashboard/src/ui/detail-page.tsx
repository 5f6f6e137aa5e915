import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import type { ReactNode } from 'react'

/** A detail on a page of its own, with the way back to its list. */
export function DetailPage({ to, list, children }: { to: string; list: string; children: ReactNode }) {
  return (
    <div className="w-full max-w-[1280px] px-4 pt-5 pb-16 sm:px-8">
      <BackLink to={to} list={list} />
      {children}
    </div>
  )
}

/** The way back, above a page's title. */
export function BackLink({ to, list }: { to: string; list: string }) {
  return (
    <Link to={to} className="mb-4 inline-flex items-center gap-1.5 text-ink-2 hover:text-ink">
      <ArrowLeft className="size-4" aria-hidden /> {list}
    </Link>
  )
}
