import type { ReactNode } from 'react'
import { classes } from './classes.ts'

/** The frame of a page: title, one-sentence status, and the main action on the right. */
export function Page({
  title,
  state,
  action,
  back,
  children,
  wide = false,
}: {
  title: ReactNode
  state?: ReactNode
  action?: ReactNode
  /** A link to the page that this one belongs to. */
  back?: ReactNode
  children: ReactNode
  /** For tables, which use the whole width. */
  wide?: boolean
}) {
  return (
    <div className={classes('w-full px-4 pt-6 pb-16 sm:px-8', wide ? 'max-w-400' : 'max-w-320')}>
      {back}
      <header className="mb-5 flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h1 className="text-xl font-semibold tracking-tight">{title}</h1>
          {state !== undefined && <p className="mt-0.5 text-ink-2">{state}</p>}
        </div>
        {action !== undefined && <div className="flex flex-wrap items-center gap-2">{action}</div>}
      </header>
      {children}
    </div>
  )
}

export function Card({
  title,
  aside,
  children,
  flush = false,
  className,
}: {
  title?: ReactNode
  aside?: ReactNode
  children: ReactNode
  /** The content reaches the edges, as a table does. */
  flush?: boolean
  className?: string
}) {
  return (
    <section className={classes('min-w-0 rounded-card border border-line bg-surface', className)}>
      {title !== undefined && (
        <header className="flex min-h-11 items-center justify-between gap-3 border-b border-line px-4 py-2">
          <h2 className="font-medium">{title}</h2>
          {aside}
        </header>
      )}
      <div className={flush ? '' : 'p-4'}>{children}</div>
    </section>
  )
}

/** Facts as pairs of a name and a value, the names in a column of one width. A value wider than a phone goes on in the next line. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-facts gap-x-4 gap-y-2.5 text-base">{children}</dl>
}

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-ink-3">{name}</dt>
      <dd className="flex min-w-0 flex-wrap items-center gap-x-1.5 gap-y-1 wrap-anywhere [&_.num]:whitespace-normal">
        {children}
      </dd>
    </>
  )
}

/** An empty state: a sentence, and the action that fills it. */
export function Empty({
  icon,
  title,
  heading: Heading = 'p',
  children,
  action,
}: {
  icon: ReactNode
  title: string
  /** `h1` where it is the whole page. */
  heading?: 'p' | 'h1'
  children?: ReactNode
  action?: ReactNode
}) {
  return (
    <div className="flex flex-col items-center px-6 py-14 text-center">
      <span className="mb-3 inline-flex size-10 items-center justify-center rounded-card border border-line bg-well text-ink-3 [&_svg]:size-5">
        {icon}
      </span>
      <Heading className="font-medium">{title}</Heading>
      {children !== undefined && <p className="mt-1 max-w-110 text-ink-2">{children}</p>}
      {action !== undefined && <div className="mt-4 flex flex-wrap justify-center gap-2">{action}</div>}
    </div>
  )
}

/** Placeholder lines while content loads, announced once to screen readers. */
export function Skeleton({ lines = 3, className }: { lines?: number; className?: string }) {
  const widths = ['w-3/5', 'w-4/5', 'w-2/5', 'w-2/3', 'w-1/2']
  return (
    <div role="status" className={classes('flex flex-col gap-3', className)}>
      <span className="sr-only">Loading</span>
      {Array.from({ length: lines }, (_, line) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike and never change places
        <span key={line} className={classes('skeleton h-3.5', widths[line % widths.length])} />
      ))}
    </div>
  )
}
