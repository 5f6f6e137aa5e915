import { useMutation, useQueryClient } from '@tanstack/react-query'
import { FlaskConical } from 'lucide-react'
import { useMay, useWorkspace } from '../../api/context.ts'
import { Button, type ButtonTone } from '../../ui/button.tsx'
import { toastFailed } from '../../ui/toast.tsx'
import { payNow } from './pay-now.ts'

/** Makes a payment in the test environment; its row arrives on the same page. In the live environment there is none to make. */
export function TestPaymentButton({ tone }: { tone?: ButtonTone }) {
  const { environment, purser } = useWorkspace()
  const mayPay = useMay('member')
  const queries = useQueryClient()
  const pay = useMutation({
    mutationFn: () => payNow(purser, queries),
    onError: toastFailed,
  })
  if (environment !== 'test' || !mayPay) return null
  return (
    <Button tone={tone ?? 'secondary'} busy={pay.isPending} onClick={() => pay.mutate()}>
      <FlaskConical aria-hidden /> {pay.isPending ? 'Paying …' : 'Make a test payment'}
    </Button>
  )
}
