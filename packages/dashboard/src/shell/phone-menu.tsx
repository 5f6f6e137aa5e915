import { Dialog } from '@base-ui/react/dialog'
import { Rail } from './rail.tsx'

interface PhoneMenuProps {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly onSearch: () => void
}

/** The rail as a sheet from the left. */
export function PhoneMenu({ open, onOpenChange, onSearch }: PhoneMenuProps) {
  return (
    <Dialog.Root open={open} onOpenChange={onOpenChange}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fade-in fixed inset-0 z-30 bg-scrim" />
        <Dialog.Popup className="slide-in-left fixed inset-y-0 left-0 z-40 w-70 max-w-5/6 border-r border-line bg-page outline-none">
          <Dialog.Title className="sr-only">Menu</Dialog.Title>
          <Rail full onSearch={onSearch} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  )
}
