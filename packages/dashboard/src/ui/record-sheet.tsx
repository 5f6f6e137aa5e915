import { Link } from '@tanstack/react-router'
import { Maximize2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { buttonClasses } from './button.tsx'
import { Sheet } from './overlay.tsx'
import { Tip } from './tip.tsx'

interface RecordSheetProps {
  readonly title: string
  readonly open: boolean
  readonly onClose: () => void
  /** The page that shows the record alone. */
  readonly page?: string | undefined
  readonly children: ReactNode
  readonly footer?: ReactNode
}

/** One record beside the list that it was opened from, with a link to its page. */
export function RecordSheet({ page, ...sheet }: RecordSheetProps) {
  const head =
    page === undefined ? undefined : (
      <Tip text="Open as a page">
        <Link to={page} aria-label="Open as a page" className={`${buttonClasses('ghost', 'small')} size-7 px-0`}>
          <Maximize2 aria-hidden />
        </Link>
      </Tip>
    )
  return <Sheet {...sheet} head={head} />
}
