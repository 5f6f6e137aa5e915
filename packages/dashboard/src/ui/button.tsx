import { Tooltip } from '@base-ui/react/tooltip'
import type { ComponentProps, ReactElement, ReactNode } from 'react'
import { classes } from './classes.ts'

export type ButtonTone = 'primary' | 'secondary' | 'ghost' | 'danger'

const tones: Readonly<Record<ButtonTone, string>> = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-hover',
  secondary: 'bg-surface text-ink border border-line-strong hover:bg-well',
  ghost: 'text-ink-2 hover:bg-well hover:text-ink',
  danger: 'bg-surface text-failed border border-line-strong hover:bg-failed-soft',
}

/** The classes of a button, for a link that looks like one. */
export function buttonClasses(tone: ButtonTone = 'secondary', small = false): string {
  return classes(
    'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-control font-medium whitespace-nowrap transition-colors duration-100 select-none',
    'disabled:opacity-55 aria-disabled:opacity-55 [&_svg]:size-4 [&_svg]:shrink-0',
    small ? 'h-7 px-2 text-sm' : 'h-8 px-3 text-base',
    tones[tone],
  )
}

interface ButtonProps extends ComponentProps<'button'> {
  readonly tone?: ButtonTone
  readonly small?: boolean
  /** Shown and announced while the act is under way; the button takes no further click. */
  readonly busy?: boolean
}

export function Button({ tone = 'secondary', small = false, busy = false, className, children, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled === true || busy}
      aria-busy={busy || undefined}
      className={classes(buttonClasses(tone, small), className)}
    >
      {children}
    </button>
  )
}

/** A button that is an icon alone; its label is its name and its tooltip. */
export function IconButton({ label, children, className, ...rest }: ComponentProps<'button'> & { label: string }) {
  return (
    <Tip text={label}>
      <button
        type="button"
        aria-label={label}
        {...rest}
        className={classes(
          'inline-flex size-7 shrink-0 items-center justify-center rounded-control text-ink-3 hover:bg-well hover:text-ink [&_svg]:size-4',
          className,
        )}
      >
        {children}
      </button>
    </Tip>
  )
}

/** Shows words beside whatever has the pointer or the focus. */
export function Tip({
  text,
  children,
  side = 'top',
}: {
  text: ReactNode
  children: ReactElement
  side?: 'top' | 'right'
}) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} delay={250} />
      <Tooltip.Portal>
        <Tooltip.Positioner sideOffset={6} side={side} className="z-50">
          <Tooltip.Popup className="fade-in max-w-80 rounded-control bg-ink px-2 py-1 text-xs text-page shadow-float">
            {text}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}
