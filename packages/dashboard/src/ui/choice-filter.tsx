import { Select } from './form.tsx'
import { middleTruncate } from './format.ts'

interface ChoiceFilterProps {
  readonly label: string
  /** The choice of all. */
  readonly any: string
  /** Those without a name are shown by their ids. */
  readonly choices: readonly { readonly id: string; readonly name: string | null }[]
  readonly value: string | undefined
  /** Empty for all. */
  readonly onSet: (id: string) => void
  readonly className?: string
}

/** A filter by one of several, or by none. What the address names is a choice too, although it may be unknown. */
export function ChoiceFilter({ label, any, choices, value, onSet, className }: ChoiceFilterProps) {
  const others = value === undefined || choices.some(({ id }) => id === value) ? [] : [{ id: value, name: null }]
  return (
    <Select
      aria-label={label}
      value={value ?? ''}
      onChange={({ target }) => onSet(target.value)}
      {...(className !== undefined && { className })}
    >
      <option value="">{any}</option>
      {[...choices, ...others].map(({ id, name }) => (
        <option key={id} value={id}>
          {name ?? middleTruncate(id)}
        </option>
      ))}
    </Select>
  )
}
