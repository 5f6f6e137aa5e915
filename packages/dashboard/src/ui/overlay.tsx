import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { type ReactNode, useRef } from 'react'
import { IconButton } from './button.tsx'

interface OverlayProps {
  readonly open: boolean
  readonly onClose: () => void
  readonly title: ReactNode
  readonly children: ReactNode
  /** Stays visible below the scrolling content. */
  readonly footer?: ReactNode
}

/** A panel that slides in from the right over the page; Escape closes it. */
export function Sheet({ open, onClose, title, children, footer, head }: OverlayProps & { head?: ReactNode }) {
  // The panel itself takes the focus: on its first button a tooltip would open, and take the first Escape.
  const popup = useRef<HTMLDivElement>(null)
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fade-in fixed inset-0 z-30 bg-scrim" />
        <Base.Popup
          ref={popup}
          initialFocus={popup}
          className="slide-in-right fixed inset-y-0 right-0 z-40 flex w-full max-w-155 flex-col border-l border-line bg-surface shadow-float outline-none"
        >
          <header className="flex min-h-13 items-center justify-between gap-3 border-b border-line px-5 py-2">
            <Base.Title className="min-w-0 font-medium">{title}</Base.Title>
            <span className="flex items-center gap-1">
              {head}
              <Base.Close render={<IconButton label="Close" />}>
                <X aria-hidden />
              </Base.Close>
            </span>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto p-5">{children}</div>
          {footer !== undefined && (
            <footer className="flex justify-end gap-2 border-t border-line px-5 py-3">{footer}</footer>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

/** A modal confirmation dialog, whose button names the action. */
export function Dialog({ open, onClose, title, children, footer }: OverlayProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="fade-in fixed inset-0 z-50 bg-scrim" />
        <Base.Popup className="pop-in fixed inset-x-4 top-1/2 z-50 mx-auto flex max-h-5/6 max-w-120 -translate-y-1/2 flex-col rounded-card border border-line bg-surface shadow-float outline-none">
          <Base.Title className="px-5 pt-4 text-lg font-semibold">{title}</Base.Title>
          <div className="min-h-0 overflow-y-auto px-5 pt-2 pb-5">{children}</div>
          {footer !== undefined && (
            <footer className="flex justify-end gap-2 border-t border-line px-5 py-3">{footer}</footer>
          )}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}
