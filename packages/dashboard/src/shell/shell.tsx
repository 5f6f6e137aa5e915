import { Outlet, useRouterState } from '@tanstack/react-router'
import { Menu as MenuIcon, OctagonPause, Search } from 'lucide-react'
import { lazy, Suspense, useEffect, useState } from 'react'
import { useWorkspace } from '../api/context.ts'
import { IconButton } from '../ui/button.tsx'
import { TipHost } from '../ui/tip.tsx'
import { Time } from '../ui/values.tsx'
import { Rail } from './rail.tsx'

const loadPalette = () => import('./palette.tsx')
const Palette = lazy(async () => ({ default: (await loadPalette()).Palette }))
const PhoneMenu = lazy(async () => ({ default: (await import('./phone-menu.tsx')).PhoneMenu }))
/** The palette is fetched once the first page has what it needs, so that it opens at once later. */
const fetchPaletteAfterMs = 1_500

/** Whether something was opened at least once: it is loaded then and stays mounted for its closing animation. */
function useWasOpen({ open }: { readonly open: boolean }): boolean {
  const [wasOpen, setWasOpen] = useState(open)
  if (open && !wasOpen) setWasOpen(true)
  return wasOpen
}

/** The navigation and header around every page. */
export function Shell() {
  const { environment } = useWorkspace()
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const hasPalette = useWasOpen({ open: isPaletteOpen })
  const openPalette = () => setPaletteOpen(true)
  useEffect(() => {
    const timer = setTimeout(() => void loadPalette(), fetchPaletteAfterMs)
    return () => clearTimeout(timer)
  }, [])
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return
      event.preventDefault()
      setPaletteOpen((open) => !open)
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
  return (
    <div className="flex min-h-dvh flex-col">
      <a
        href="#content"
        className="sr-only z-60 rounded-control bg-ink px-3 py-2 text-page focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the content
      </a>
      {environment === 'test' && <TestBar />}
      <MobileBar onSearch={openPalette} />
      <div className="flex min-h-0 flex-1">
        <aside className="sticky top-(--bar) hidden h-below-bar w-14 shrink-0 border-r border-line sm:block lg:w-58">
          <Rail onSearch={openPalette} />
        </aside>
        <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
          <Suspended />
          <Outlet />
        </main>
      </div>
      <TipHost />
      <Suspense>{hasPalette && <Palette open={isPaletteOpen} onClose={() => setPaletteOpen(false)} />}</Suspense>
    </div>
  )
}

function TestBar() {
  return (
    <div
      role="note"
      className="stripes sticky top-0 z-25 flex h-(--bar) shrink-0 items-center justify-center gap-2 text-xs font-medium"
    >
      <span className="font-semibold tracking-wider">TEST</span>
      <span className="hidden sm:inline">Everything here is test money on test networks.</span>
    </div>
  )
}

/** Shows on each page that the operator has suspended the organisation, with the reason. */
function Suspended() {
  const { suspendedAt, suspensionReason } = useWorkspace().organisation
  if (suspendedAt === null) return null
  return (
    <div role="note" className="flex gap-3 border-b border-line bg-failed-soft px-4 py-3 sm:px-8">
      <OctagonPause className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden />
      <div className="min-w-0">
        <p className="font-medium text-failed">
          The operator suspended this organisation on <Time at={suspendedAt} full />.
        </p>
        <p className="mt-0.5 break-words">{suspensionReason}</p>
        <p className="mt-0.5 text-ink-2">
          You can read and export everything. Nothing is sold, sent or changed until the operator resumes it. Payments
          and transfers from before still finish.
        </p>
      </div>
    </div>
  )
}

/** On a phone the rail is a sheet from the left. It closes when a page was chosen. */
function MobileBar({ onSearch }: { onSearch: () => void }) {
  const [open, setOpen] = useState(false)
  const hasMenu = useWasOpen({ open })
  const pathname = useRouterState({ select: ({ location }) => location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new address closes it
  useEffect(() => setOpen(false), [pathname])
  return (
    <div className="sticky top-(--bar) z-20 flex h-12 items-center gap-2 border-b border-line bg-page px-3 sm:hidden">
      <IconButton label="Open the menu" aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(true)}>
        <MenuIcon aria-hidden />
      </IconButton>
      <Suspense>{hasMenu && <PhoneMenu open={open} onOpenChange={setOpen} onSearch={onSearch} />}</Suspense>
      <span className="flex-1 font-semibold">Purser</span>
      <IconButton label="Search" onClick={onSearch}>
        <Search aria-hidden />
      </IconButton>
    </div>
  )
}
