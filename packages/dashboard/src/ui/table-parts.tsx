import { ArrowUp } from 'lucide-react'
import { count as countWords } from './format.ts'

/** Shows the number of new rows, and adds them to the list when pressed. */
export function NewRowsPill({ count, noun, onShow }: { count: number; noun: string; onShow: () => void }) {
  if (count === 0) return null
  return (
    <div className="pointer-events-none sticky top-12 z-20 flex h-0 justify-center">
      <button
        type="button"
        onClick={onShow}
        className="pointer-events-auto mt-2 inline-flex h-7 items-center gap-1.5 rounded-full bg-accent px-3 text-sm font-medium text-accent-ink shadow-float hover:bg-accent-hover"
      >
        <ArrowUp className="size-3.5" aria-hidden /> {countWords(count, `new ${noun}`)}
      </button>
    </div>
  )
}

/** Placeholder of a table while its rows load. */
export function TableSkeleton({ rows = 8 }: { rows?: number }) {
  return (
    <div role="status">
      <span className="sr-only">Loading</span>
      <div className="h-9 border-b border-line" />
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike and never change places
        <div key={row} className="flex h-11 items-center gap-6 border-b border-line px-4 last:border-b-0">
          <span className="skeleton h-4 w-20" />
          <span className="skeleton h-4 w-24" />
          <span className="skeleton h-4 flex-1 max-w-80" />
          <span className="skeleton ml-auto hidden h-4 w-28 sm:block" />
        </div>
      ))}
    </div>
  )
}
