import { useMutation, useQueryClient } from '@tanstack/react-query'
import { FlaskConical } from 'lucide-react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button, type ButtonTone } from '../../ui/button.tsx'
import { toastDone, toastFailed } from '../../ui/toast.tsx'
import { makeTestPayment } from '../payments/make-test-payment.ts'

export const sessionsKey = ['sessions'] as const

/** Makes a test payment and opens the session that it pays for. In the live environment there is none to make. */
export function TestSessionButton({ tone = 'secondary' }: { tone?: ButtonTone }) {
  const { environment, purser } = useWorkspace()
  const mayOpen = useMay('member')
  const queries = useQueryClient()
  const open = useMutation({
    mutationFn: async () => {
      const { paymentId } = await makeTestPayment(purser)
      return purser.sessions.create({ paymentId })
    },
    onSuccess: () => {
      toastDone('A test payment opened a session')
      void queries.invalidateQueries({ queryKey: sessionsKey })
    },
    onError: toastFailed,
  })
  if (environment !== 'test' || !mayOpen) return null
  return (
    <Button tone={tone} busy={open.isPending} onClick={() => open.mutate()}>
      <FlaskConical aria-hidden /> {open.isPending ? 'Paying …' : 'Open a test session'}
    </Button>
  )
}
