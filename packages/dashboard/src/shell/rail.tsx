import { Link } from '@tanstack/react-router'
import { Search } from 'lucide-react'
import { navigation } from '../pages/navigation.ts'
import { classes } from '../ui/classes.ts'
import { Tip } from '../ui/tip.tsx'
import { AccountMenu } from './account-menu.tsx'
import { LiveDot } from './live-dot.tsx'
import { ScopeSwitch } from './scope-switch.tsx'
import type { NavEntry } from './section.ts'

const groups: readonly { readonly id: NavEntry['group']; readonly label: string | undefined }[] = [
  { id: 'money in', label: undefined },
  { id: 'wallets', label: 'Wallets' },
  { id: 'developers', label: 'Developers' },
  { id: 'organisation', label: 'Organisation' },
]

interface RailProps {
  /** With labels at any width, in the sheet of a phone. */
  readonly full?: boolean
  readonly onSearch: () => void
}

export function Rail({ full = false, onSearch }: RailProps) {
  const label = full ? '' : 'max-lg:sr-only'
  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-col gap-1.5 p-2">
        <ScopeSwitch full={full} />
        <button
          type="button"
          onClick={onSearch}
          className={classes(
            'flex h-8 items-center gap-2 rounded-control border border-line bg-surface px-2 text-ink-3 hover:border-line-strong',
            !full && 'max-lg:justify-center',
          )}
        >
          <Search className="size-4 shrink-0" aria-hidden />
          <span className={classes('flex-1 truncate text-left', label)}>Search</span>
          <kbd className={classes('font-sans text-xs', full ? '' : 'max-lg:hidden')}>{commandKey}K</kbd>
        </button>
      </div>
      <nav aria-label="Sections" className="min-h-0 flex-1 overflow-y-auto px-2 pb-2">
        {groups.map((group) => {
          const entries = navigation.filter((entry) => entry.group === group.id)
          if (entries.length === 0) return null
          return (
            <div key={group.id} className="mt-3 first:mt-1">
              {group.label !== undefined && (
                <p className={classes('px-2 pb-1 text-xs font-medium text-ink-3', !full && 'max-lg:hidden')}>
                  {group.label}
                </p>
              )}
              <ul className="flex flex-col gap-px">
                {entries.map((entry) => (
                  <li key={entry.path}>
                    <RailLink entry={entry} full={full} />
                  </li>
                ))}
              </ul>
            </div>
          )
        })}
      </nav>
      <div className="flex flex-col gap-1 border-t border-line p-2">
        <LiveDot full={full} />
        <AccountMenu full={full} />
      </div>
    </div>
  )
}

const commandKey = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘' : 'Ctrl '

function RailLink({ entry: { icon: Icon, label, path, badge: Badge }, full }: { entry: NavEntry; full: boolean }) {
  const link = (
    <Link
      to={path}
      preload="intent"
      activeOptions={{ exact: path === '/', includeSearch: false }}
      activeProps={{ className: 'bg-well text-ink font-medium [&_svg]:text-accent-text', 'aria-current': 'page' }}
      inactiveProps={{ className: 'text-ink-2 hover:bg-well/70 hover:text-ink' }}
      className={classes(
        'relative flex h-7 items-center gap-2.5 rounded-control px-2',
        !full && 'max-lg:justify-center',
      )}
    >
      <Icon className="size-4 shrink-0" aria-hidden />
      <span className={classes('min-w-0 flex-1 truncate', !full && 'max-lg:sr-only')}>{label}</span>
      {Badge !== undefined && (
        <span className={full ? '' : 'max-lg:absolute max-lg:top-0 max-lg:right-0'}>
          <Badge />
        </span>
      )}
    </Link>
  )
  return full || matchMedia('(min-width: 1100px)').matches ? (
    link
  ) : (
    <Tip text={label} side="right">
      {link}
    </Tip>
  )
}
