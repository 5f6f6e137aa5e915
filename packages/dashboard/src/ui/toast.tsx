import { Toast } from '@base-ui/react/toast'
import { CircleCheck, CircleX, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { errorWords } from './error-block.tsx'

const manager = Toast.createToastManager()

/** Shows a success message. The page must show the result too. */
export function toastDone(title: string, description?: string): void {
  manager.add({ title, ...(description !== undefined && { description }), type: 'done' })
}

/** Shows an error with its request id until it is closed. */
export function toastFailed(error: unknown): void {
  const { sentence, advice, requestId } = errorWords(error)
  const description = [advice, requestId === undefined ? '' : `Request ${requestId}`].filter(Boolean).join(' ')
  manager.add({ title: sentence, description, type: 'failed', timeout: 0, priority: 'high' })
}

export function Toasts({ children }: { children: ReactNode }) {
  return (
    <Toast.Provider toastManager={manager} limit={3}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className="fixed inset-x-4 bottom-4 z-60 ml-auto flex max-w-95 flex-col gap-2">
          <ToastList />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function ToastList() {
  const { toasts } = Toast.useToastManager()
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      className="fade-in flex items-start gap-2.5 rounded-card border border-line bg-surface p-3 shadow-float"
    >
      {toast.type === 'failed' ? (
        <CircleX className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden />
      ) : (
        <CircleCheck className="mt-0.5 size-4 shrink-0 text-settled" aria-hidden />
      )}
      <Toast.Content className="min-w-0 flex-1">
        <Toast.Title className="font-medium break-words" />
        <Toast.Description className="text-sm break-words text-ink-2" />
      </Toast.Content>
      <Toast.Close aria-label="Close" className="rounded-control p-0.5 text-ink-3 hover:bg-well">
        <X className="size-4" aria-hidden />
      </Toast.Close>
    </Toast.Root>
  ))
}
