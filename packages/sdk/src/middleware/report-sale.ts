import type { Admission } from './admission.ts'
import type { PaymentContext } from './request-payment.ts'
import type { RequestShape } from './request-shape.ts'

/** The inputs of a report besides the payment context. */
interface Seen {
  readonly protocol: 'x402' | 'mpp'
  readonly contentType: string | undefined
  readonly look: (() => RequestShape) | undefined
}

/** Wraps an admission so that a completed sale is reported. Returns it unchanged if reports are off. */
export function reporting(
  context: PaymentContext,
  { protocol, contentType, look }: Seen,
  admission: Admission,
): Admission {
  const { reportSold, publicUrl, onFault } = context.seller
  if (admission.kind !== 'paid' || reportSold === undefined || look === undefined) return admission
  const conclude = async () => {
    const conclusion = await admission.conclude()
    if (conclusion.kind === 'withhold') return conclusion
    try {
      const basePath = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
      reportSold({ context, protocol, basePath, contentType, look: look() })
    } catch (error) {
      onFault({ stage: 'registry', error })
    }
    return conclusion
  }
  return { ...admission, conclude }
}
