import type { Session } from '../sessions.ts'
import type { Admission } from './admission.ts'
import { isMisconfigured, type PaymentContext, requestPayment } from './request-payment.ts'
import { problemResponse } from './responses.ts'
import { openVault } from './vault.ts'

/**
 * Decides about a request that presents a session instead of a payment. An invalid session gets a 402. Fails closed
 * if Purser does not respond clearly.
 */
export async function admitSession(context: PaymentContext, token: string): Promise<Admission> {
  const { seller, resource } = context
  try {
    const session = await seller.sessions.check(token, new URL(resource).host)
    if (session !== undefined) return admitted(context, session)
  } catch (error) {
    seller.onFault({ stage: 'session', error })
    const code = isMisconfigured(error) ? 'payments-misconfigured' : 'payments-unavailable'
    return { kind: 'refused', response: problemResponse(code, 5) }
  }
  return { kind: 'refused', response: await requestPayment(context) }
}

/** The session was paid for earlier: there is nothing to settle and no receipt to add. */
function admitted({ seller, route }: PaymentContext, session: Session): Admission {
  return {
    kind: 'paid',
    payment: undefined,
    session,
    vault: openVault(seller.purser, async () => session.vaultId),
    bodyBytesMax: route.bodyBytesMax,
    conclude: async () => ({
      kind: 'release',
      headers: [],
      keep: undefined,
      delivered: () => {},
      undelivered: () => {},
    }),
    tooLarge: () => {
      seller.onFault({ stage: 'handler', error: new RangeError('The response exceeds bodyBytesMax.') })
      return problemResponse('response-too-large')
    },
    failed: () => {},
    abandon: () => true,
    unended: () => {},
  }
}
