import { Dialog } from '@base-ui/react/dialog'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { ArrowRight, FlaskConical, Monitor, Moon, Radio, Search, Sun } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useEffect, useId, useState } from 'react'
import { isAtLeast, useWorkspace } from '../api/context.ts'
import { navigation } from '../pages/navigation.ts'
import { classes } from '../ui/classes.ts'
import { setTheme } from '../ui/theme.ts'
import { toastFailed } from '../ui/toast.tsx'
import { switchEnvironment } from './scope-switch.tsx'
import type { ActSheet, NavAct } from './section.ts'

interface Command {
  readonly id: string
  readonly label: string
  readonly hint?: string
  readonly icon: ReactNode
  readonly run: () => void
}

/** The command palette: opens pages, runs actions and opens the resource of a pasted id. */
export function Palette({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [sheet, setSheet] = useState<{ readonly Sheet: ActSheet }>()
  return (
    <>
      <PaletteDialog open={open} onClose={onClose} onAct={(Sheet) => setSheet({ Sheet })} />
      {sheet !== undefined && <sheet.Sheet onClose={() => setSheet(undefined)} />}
    </>
  )
}

interface DialogProps extends BodyProps {
  readonly open: boolean
}

function PaletteDialog({ open, onClose, onAct }: DialogProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fade-in fixed inset-0 z-50 bg-scrim" />
        <Dialog.Popup className="pop-in fixed inset-x-3 top-1/8 z-50 mx-auto flex max-h-3/4 max-w-140 flex-col overflow-hidden rounded-card border border-line bg-surface shadow-float outline-none">
          <Dialog.Title className="sr-only">Search or paste an id</Dialog.Title>
          <PaletteBody onClose={onClose} onAct={onAct} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

interface BodyProps {
  readonly onClose: () => void
  /** Shows the sheet of an act over the page. */
  readonly onAct: (sheet: ActSheet) => void
}

function PaletteBody({ onClose, onAct }: BodyProps) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const listId = useId()
  const commands = useCommands(text.trim(), onAct)
  // biome-ignore lint/correctness/useExhaustiveDependencies: other words, other first choice
  useEffect(() => setChosen(0), [text])
  const run = (command: Command | undefined) => {
    if (command === undefined) return
    onClose()
    command.run()
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      setChosen((now) => (now + step + commands.length) % Math.max(1, commands.length))
    }
    if (event.key === 'Enter') {
      event.preventDefault()
      run(commands[chosen])
    }
  }
  return (
    <>
      <div className="flex items-center gap-2.5 border-b border-line px-4">
        <Search className="size-4 shrink-0 text-ink-3" aria-hidden />
        <input
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={press}
          role="combobox"
          aria-expanded="true"
          aria-controls={listId}
          aria-activedescendant={commands[chosen] === undefined ? undefined : `${listId}-${commands[chosen].id}`}
          aria-label="Search pages and actions, or paste an ID"
          placeholder="Search pages and actions, or paste an ID"
          className="h-12 w-full bg-transparent text-lg outline-none"
          spellCheck={false}
          autoComplete="off"
        />
      </div>
      <div id={listId} role="listbox" aria-label="Results" className="min-h-0 overflow-y-auto p-1.5">
        {commands.length === 0 && <p className="px-3 py-6 text-center text-ink-2">No results.</p>}
        {commands.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keyboard, as a combobox does
          <div
            key={command.id}
            id={`${listId}-${command.id}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onPointerMove={() => setChosen(index)}
            onClick={() => run(command)}
            className={classes(
              'flex min-h-9 cursor-pointer items-center gap-2.5 rounded-control px-2.5 [&_svg]:size-4 [&_svg]:text-ink-3',
              index === chosen && 'bg-well',
            )}
          >
            {command.icon}
            <span className="min-w-0 flex-1 truncate">{command.label}</span>
            {command.hint !== undefined && <span className="text-sm text-ink-3">{command.hint}</span>}
          </div>
        ))}
      </div>
    </>
  )
}

function useCommands(text: string, onAct: BodyProps['onAct']): readonly Command[] {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const { environment, organisation, purser } = useWorkspace()
  const perform = async ({ act }: NavAct): Promise<void> => {
    if ('run' in act) await act.run(purser, queries)
    else onAct(await act.load())
  }
  const go = (path: string) => () => void navigate({ to: path })
  const opened = navigation
    .flatMap(({ label, opens = [] }) => opens.map((one) => ({ ...one, label })))
    .filter(({ prefix }) => text.startsWith(prefix) && text.length > prefix.length)
    .map(({ path, label }) => ({
      id: 'opened',
      label: `Open ${text}`,
      hint: label,
      icon: <ArrowRight aria-hidden />,
      run: go(path(text)),
    }))
  const pages = navigation.map(({ label, icon: Icon, path }) => ({
    id: `page${path.replaceAll('/', '-')}`,
    label,
    hint: 'Page',
    icon: <Icon aria-hidden />,
    run: go(path),
  }))
  const other = environment === 'test' ? 'live' : 'test'
  const offered = navigation
    .flatMap(({ acts = [] }) => acts)
    .filter(({ needs, only = environment }) => isAtLeast(organisation.role, needs) && only === environment)
    .map((one) => ({
      id: `act-${one.label.toLowerCase().replaceAll(' ', '-')}`,
      label: one.label,
      hint: 'Action',
      icon: <one.icon aria-hidden />,
      run: () => void perform(one).catch(toastFailed),
    }))
  const switches: readonly Command[] = [
    {
      id: 'environment',
      label: `Switch to the ${other} environment`,
      icon: other === 'live' ? <Radio aria-hidden /> : <FlaskConical aria-hidden />,
      run: () => switchEnvironment(other),
    },
    { id: 'dark', label: 'Use the dark theme', icon: <Moon aria-hidden />, run: () => setTheme('dark') },
    { id: 'light', label: 'Use the light theme', icon: <Sun aria-hidden />, run: () => setTheme('light') },
    {
      id: 'system',
      label: 'Use the theme of the system',
      icon: <Monitor aria-hidden />,
      run: () => setTheme('system'),
    },
  ]
  const words = text.toLowerCase().split(/\s+/)
  const matches = ({ label }: Command) => words.every((word) => label.toLowerCase().includes(word))
  // Without a search text actions come first: the pages are in the navigation.
  const all = text === '' ? [...offered, ...pages] : [...pages, ...offered]
  return [...opened, ...[...all, ...switches].filter(matches)]
}
