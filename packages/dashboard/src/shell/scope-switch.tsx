import type { Environment } from '@purser/sdk'
import { Building2, ChevronsUpDown, FlaskConical, Radio } from 'lucide-react'
import { useWorkspace } from '../api/context.ts'
import { inEnvironment, rememberEnvironment, rememberOrganisation } from '../api/scope.ts'
import { classes } from '../ui/classes.ts'
import { sentenceCase } from '../ui/format.ts'
import { Menu } from '../ui/menu.tsx'

/** A switch loads the page anew, so that nothing of one organisation or environment is ever left on a page of another. */
export function switchEnvironment(environment: Environment): void {
  rememberEnvironment(environment)
  location.assign(inEnvironment(environment, location))
}

export function ScopeSwitch({ full }: { full: boolean }) {
  const { account, organisation, environment } = useWorkspace()
  const trigger = (
    <button
      type="button"
      className={classes(
        'flex min-h-11 w-full items-center gap-2.5 rounded-control px-2 text-left hover:bg-well',
        !full && 'max-lg:justify-center max-lg:px-0',
      )}
    >
      <span
        className="inline-flex size-7 shrink-0 items-center justify-center rounded-control bg-accent text-sm font-semibold text-accent-ink"
        aria-hidden
      >
        {organisation.name.slice(0, 1).toUpperCase()}
      </span>
      <span className={classes('min-w-0 flex-1', !full && 'max-lg:sr-only')}>
        <span className="block truncate leading-4.5 font-medium">{organisation.name}</span>
        <span className={classes('block text-xs', environment === 'test' ? 'text-accent-text' : 'text-ink-3')}>
          {environment === 'test' ? 'Test environment' : 'Live environment'}
        </span>
      </span>
      <ChevronsUpDown className={classes('size-4 shrink-0 text-ink-3', !full && 'max-lg:hidden')} aria-hidden />
    </button>
  )
  const environments: readonly { id: Environment; label: string; icon: typeof Radio }[] = [
    { id: 'test', label: 'Test', icon: FlaskConical },
    { id: 'live', label: 'Live', icon: Radio },
  ]
  return (
    <Menu
      trigger={trigger}
      groups={[
        {
          title: 'Environment',
          items: environments.map(({ id, label, icon: Icon }) => ({
            label,
            icon: <Icon aria-hidden />,
            isChosen: id === environment,
            onChoose: () => switchEnvironment(id),
          })),
        },
        {
          title: 'Organisation',
          items: account.organisations.map(({ id, name, role }) => ({
            label: (
              <>
                {name} <span className="text-xs text-ink-3">{sentenceCase(role)}</span>
              </>
            ),
            icon: <Building2 aria-hidden />,
            isChosen: id === organisation.id,
            onChoose: () => {
              rememberOrganisation(id)
              location.assign(`/dashboard/${environment}`)
            },
          })),
        },
      ]}
    />
  )
}
