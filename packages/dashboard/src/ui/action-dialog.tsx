import type { ReactNode } from 'react'
import { Button } from './button.tsx'
import { ErrorBlock } from './error-block.tsx'
import { Dialog } from './overlay.tsx'

interface ActionDialogProps {
  readonly title: string
  /** The label of the button that runs the action. */
  readonly act: ReactNode
  /** The label of the button that changes nothing. */
  readonly keep: string
  readonly tone: 'primary' | 'danger'
  readonly isReady?: boolean
  readonly action: { readonly isPending: boolean; readonly error: unknown; readonly mutate: () => void }
  readonly children: ReactNode
  readonly onClose: () => void
}

/** A dialog with one action: a button runs it, another one changes nothing, and a failure is shown with a way to repeat it. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, act, keep, tone, isReady = true, action, children, onClose } = props
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>{keep}</Button>
          <Button tone={tone} busy={action.isPending} disabled={!isReady} onClick={() => action.mutate()}>
            {act}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {children}
        {action.error !== null && <ErrorBlock error={action.error} onRetry={() => action.mutate()} />}
      </div>
    </Dialog>
  )
}
