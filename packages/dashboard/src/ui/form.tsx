import { ChevronDown } from 'lucide-react'
import { type ComponentProps, type FormEvent, type ReactNode, useId, useState } from 'react'
import { classes } from './classes.ts'

const control =
  'h-8 w-full min-w-0 rounded-control border border-line-strong bg-surface px-2.5 text-base text-ink hover:border-ink-3 disabled:opacity-60 aria-invalid:border-failed'

/** A label, one control, what it means, and what is wrong with it. The control gets the id and the description. */
export function Field({
  label,
  hint,
  fault,
  children,
}: {
  label: string
  hint?: ReactNode
  fault?: string | undefined
  children: (wiring: {
    id: string
    'aria-describedby': string | undefined
    'aria-invalid': true | undefined
  }) => ReactNode
}) {
  const id = useId()
  const noteId = `${id}-note`
  const note = fault ?? hint
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        'aria-describedby': note === undefined ? undefined : noteId,
        'aria-invalid': fault === undefined ? undefined : true,
      })}
      {note !== undefined && (
        <p id={noteId} className={classes('text-sm', fault === undefined ? 'text-ink-3' : 'text-failed')}>
          {note}
        </p>
      )}
    </div>
  )
}

export function TextInput({ className, ...rest }: ComponentProps<'input'>) {
  return <input autoComplete="off" spellCheck={false} {...rest} className={classes(control, className)} />
}

interface SubmittedInputProps {
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly onSet: (text: string) => void
}

/** A text filter that applies on Enter or when the focus leaves it. Give it a `key` of its value. */
export function SubmittedInput({ label, placeholder, value, onSet }: SubmittedInputProps) {
  const [text, setText] = useState(value)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSet(text.trim())
  }
  return (
    <form onSubmit={submit} className="col-span-2 w-full sm:w-60 xl:w-72">
      <TextInput
        aria-label={label}
        placeholder={placeholder}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onBlur={() => text.trim() !== value && onSet(text.trim())}
      />
    </form>
  )
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea spellCheck={false} {...rest} className={classes(control, 'h-auto min-h-20 py-1.5', className)} />
}

/** The browser's own list of choices: it works with every keyboard and on every phone. */
export function Select({ className, children, ...rest }: ComponentProps<'select'>) {
  return (
    <span className={classes('relative inline-flex min-w-0', className)}>
      <select {...rest} className={classes(control, 'appearance-none pr-7')}>
        {children}
      </select>
      <ChevronDown className="pointer-events-none absolute top-2 right-2 size-4 text-ink-3" aria-hidden />
    </span>
  )
}

interface CheckChoiceProps {
  readonly label: string
  readonly isOn: boolean
  readonly onToggle: () => void
  readonly mono?: boolean
}

/** One of several things that are chosen or not. */
export function CheckChoice({ label, isOn, onToggle, mono = false }: CheckChoiceProps) {
  return (
    <label className="flex min-w-0 items-center gap-2">
      <input type="checkbox" className="size-4 shrink-0 accent-(--accent)" checked={isOn} onChange={onToggle} />
      <span className={mono ? 'min-w-0 font-mono text-sm break-all' : 'min-w-0'}>{label}</span>
    </label>
  )
}
