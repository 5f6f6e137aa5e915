import { Link } from '@tanstack/react-router'
import { X } from 'lucide-react'
import { buttonClasses } from '../../ui/button.tsx'
import { ChoiceFilter } from '../../ui/choice-filter.tsx'
import { Select, SubmittedInput } from '../../ui/form.tsx'
import { PhoneFilters } from '../../ui/phone-filters.tsx'
import { rangeNames, ranges } from '../../ui/range.ts'
import { useActorNames } from './actor.tsx'
import type { AuditSearch } from './search.ts'

interface FiltersProps {
  readonly filters: Omit<AuditSearch, 'open'>
  readonly onSet: (change: Record<string, string | undefined>) => void
}

/** The filters of the audit log: a whole action, the id of a target, an actor and a range of time. */
export function AuditFilters({ filters, onSet }: FiltersProps) {
  const { action, target, actor, range } = filters
  return (
    <div className="mb-3 flex flex-wrap items-center gap-2">
      <PhoneFilters chosen={Object.keys(filters).length}>
        <SubmittedInput
          key={`action ${action ?? ''}`}
          label="Action"
          placeholder="Action, such as webhooks.create"
          value={action ?? ''}
          onSet={(text) => onSet({ action: text })}
        />
        <SubmittedInput
          key={`target ${target ?? ''}`}
          label="Target"
          placeholder="Id of the target"
          value={target ?? ''}
          onSet={(text) => onSet({ target: text })}
        />
        <ActorFilter value={actor} onSet={(id) => onSet({ actor: id })} />
        <Select aria-label="Time" value={range ?? ''} onChange={({ target }) => onSet({ range: target.value })}>
          <option value="">Any time</option>
          {rangeNames.map((name) => (
            <option key={name} value={name}>
              {ranges[name].label}
            </option>
          ))}
        </Select>
        {Object.keys(filters).length > 0 && (
          <Link to="/audit-log" search={{}} className={buttonClasses('ghost')}>
            <X aria-hidden /> Clear
          </Link>
        )}
      </PhoneFilters>
    </div>
  )
}

/** Members and API keys by name. An id of the URL that is neither is shown as it is. */
function ActorFilter({ value, onSet }: { value: string | undefined; onSet: (id: string) => void }) {
  const choices = [...useActorNames()].map(([id, name]) => ({ id, name }))
  return (
    <ChoiceFilter
      label="Actor"
      any="All actors"
      choices={choices}
      value={value}
      onSet={onSet}
      className="sm:max-w-60"
    />
  )
}
