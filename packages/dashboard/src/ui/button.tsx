import type { ComponentProps } from 'react'
import { classes } from './classes.ts'
import { Tip } from './tip.tsx'

export type ButtonTone = 'primary' | 'secondary' | 'ghost' | 'danger'

const tones: Readonly<Record<ButtonTone, string>> = {
  primary: 'bg-accent text-accent-ink hover:bg-accent-hover',
  secondary: 'bg-surface text-ink border border-line-strong hover:bg-well',
  ghost: 'text-ink-2 hover:bg-well hover:text-ink',
  danger: 'bg-surface text-failed border border-line-strong hover:bg-failed-soft',
}

/** The classes of a button, for a link that looks like one. */
export function buttonClasses(tone: ButtonTone = 'secondary', size: 'small' | 'usual' = 'usual'): string {
  return classes(
    'inline-flex shrink-0 items-center justify-center gap-1.5 rounded-control font-medium whitespace-nowrap transition-colors duration-100 select-none',
    'disabled:opacity-55 aria-disabled:opacity-55 [&_svg]:size-4 [&_svg]:shrink-0',
    size === 'small' ? 'h-7 px-2 text-sm' : 'h-8 px-3 text-base',
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
      className={classes(buttonClasses(tone, small ? 'small' : 'usual'), className)}
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
