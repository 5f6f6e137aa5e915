import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'

interface Tab {
  readonly label: ReactNode
  /** The value in the URL while this tab is shown. */
  readonly search: Readonly<Record<string, string>>
  readonly isChosen: boolean
}

/** Views of one page, each with an address of its own. */
export function Tabs({ label, to, tabs }: { label: string; to: string; tabs: readonly Tab[] }) {
  return (
    <nav
      aria-label={label}
      className="inline-flex max-w-full gap-0.5 self-start overflow-x-auto rounded-control bg-well p-0.5"
    >
      {tabs.map(({ label: words, search, isChosen }) => (
        <Link
          key={JSON.stringify(search)}
          to={to}
          search={search}
          resetScroll={false}
          aria-current={isChosen ? 'page' : undefined}
          className={
            isChosen
              ? 'rounded-sm bg-surface px-2.5 py-1 font-medium whitespace-nowrap text-ink ring-1 ring-line'
              : 'rounded-sm px-2.5 py-1 whitespace-nowrap text-ink-2 hover:text-ink'
          }
        >
          {words}
        </Link>
      ))}
    </nav>
  )
}
