import { Dialog } from '@base-ui/react/dialog'
import { Outlet, useRouterState } from '@tanstack/react-router'
import { Menu as MenuIcon, Search } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useWorkspace } from '../api/context.ts'
import { IconButton } from '../ui/button.tsx'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'

/** What stands around every page. */
export function Shell() {
  const { environment } = useWorkspace()
  const [isPaletteOpen, setPaletteOpen] = useState(false)
  const openPalette = () => setPaletteOpen(true)
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
        <aside className="sticky top-(--bar) hidden h-[calc(100dvh-var(--bar))] w-14 shrink-0 border-r border-line sm:block lg:w-58">
          <Rail onSearch={openPalette} />
        </aside>
        <main id="content" tabIndex={-1} className="min-w-0 flex-1 outline-none">
          <Outlet />
        </main>
      </div>
      <Palette open={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
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

/** On a phone the rail is a sheet from the left. It closes when a page was chosen. */
function MobileBar({ onSearch }: { onSearch: () => void }) {
  const [open, setOpen] = useState(false)
  const pathname = useRouterState({ select: ({ location }) => location.pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new address closes it
  useEffect(() => setOpen(false), [pathname])
  return (
    <div className="sticky top-(--bar) z-20 flex h-12 items-center gap-2 border-b border-line bg-page px-3 sm:hidden">
      <Dialog.Root open={open} onOpenChange={setOpen}>
        <Dialog.Trigger render={<IconButton label="Open the menu" />}>
          <MenuIcon aria-hidden />
        </Dialog.Trigger>
        <Dialog.Portal>
          <Dialog.Backdrop className="fade-in fixed inset-0 z-30 bg-[oklch(0.15_0.01_265/0.32)]" />
          <Dialog.Popup className="slide-in-left fixed inset-y-0 left-0 z-40 w-70 max-w-[85vw] border-r border-line bg-page outline-none">
            <Dialog.Title className="sr-only">Menu</Dialog.Title>
            <Rail full onSearch={onSearch} />
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
      <span className="flex-1 font-semibold">Purser</span>
      <IconButton label="Search" onClick={onSearch}>
        <Search aria-hidden />
      </IconButton>
    </div>
  )
}
