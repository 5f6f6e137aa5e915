import { useNavigate } from '@tanstack/react-router'
import { LogOut, Monitor, Moon, Sun } from 'lucide-react'
import { useWorkspace } from '../api/context.ts'
import { navigation } from '../pages/navigation.ts'
import { signOut } from '../sign-in/auth.ts'
import { classes } from '../ui/classes.ts'
import { Menu } from '../ui/menu.tsx'
import { setTheme, useTheme } from '../ui/theme.ts'
import { toastFailed } from '../ui/toast.tsx'

export function AccountMenu({ full }: { full: boolean }) {
  const { account } = useWorkspace()
  const theme = useTheme()
  const navigate = useNavigate()
  const name = account.name ?? account.email
  const trigger = (
    <button
      type="button"
      className={classes(
        'flex min-h-10 w-full items-center gap-2.5 rounded-control px-2 text-left hover:bg-well',
        !full && 'max-lg:justify-center max-lg:px-0',
      )}
    >
      <span
        className="inline-flex size-6 shrink-0 items-center justify-center rounded-full bg-well text-xs font-medium text-ink-2"
        aria-hidden
      >
        {name.slice(0, 1).toUpperCase()}
      </span>
      <span className={classes('min-w-0 flex-1', !full && 'max-lg:sr-only')}>
        <span className="block truncate leading-4">{name}</span>
        {account.name !== null && <span className="block truncate text-xs text-ink-3">{account.email}</span>}
      </span>
    </button>
  )
  return (
    <Menu
      trigger={trigger}
      side="top"
      groups={[
        {
          title: 'Theme',
          items: [
            {
              label: 'Light',
              icon: <Sun aria-hidden />,
              isChosen: theme === 'light',
              onChoose: () => setTheme('light'),
            },
            { label: 'Dark', icon: <Moon aria-hidden />, isChosen: theme === 'dark', onChoose: () => setTheme('dark') },
            {
              label: 'As the system',
              icon: <Monitor aria-hidden />,
              isChosen: theme === 'system',
              onChoose: () => setTheme('system'),
            },
          ],
        },
        {
          items: [
            ...navigation
              .filter(({ group }) => group === 'person')
              .map(({ label, icon: Icon, path }) => ({
                label,
                icon: <Icon aria-hidden />,
                onChoose: () => void navigate({ to: path }),
              })),
            { label: 'Sign out', icon: <LogOut aria-hidden />, onChoose: () => void signOut().catch(toastFailed) },
          ],
        },
      ]}
    />
  )
}
