import type { Purser } from '../client.ts'
import type { VerifiedPayment } from '../payments.ts'
import type { OpenedSession } from '../sessions.ts'
import type { PaymentContext } from './request-payment.ts'
import { sessionHeader } from './sessions.ts'
import { openVault, type PaidVault } from './vault.ts'

/** The vault and session that a payment buys in addition to the handler's response. */
export interface Grant {
  readonly vault: PaidVault
  /** The session header, if the route issues sessions. Never rejects. */
  readonly sessionHeaders: () => Promise<readonly (readonly [name: string, value: string])[]>
}

/**
 * The vault of a payment, created on first use, and its session. Both belong to the payment's one session at Purser.
 * If the route issues no sessions, the token stays here. If the session cannot be opened, the payer gets the response
 * anyway and pays for the next call.
 */
export function grantOf({ seller, route }: PaymentContext, payment: VerifiedPayment): Grant {
  const { purser, onFault } = seller
  const open = sessionOpener(purser, payment.paymentId, route.sessionSeconds)
  return {
    vault: openVault(purser, async () => (await open()).vaultId),
    sessionHeaders: async () => {
      if (!route.acceptSessions) return []
      try {
        return [[sessionHeader, (await open()).sessionToken]]
      } catch (error) {
        onFault({ stage: 'session', error, payment })
        return []
      }
    },
  }
}

/** Opens the session of a payment on first use. Retries only after a failure. */
export function sessionOpener(
  purser: Purser,
  paymentId: string,
  expiresIn: number | undefined,
): () => Promise<OpenedSession> {
  let opened: Promise<OpenedSession> | undefined
  return () => {
    opened ??= purser.sessions.create({ paymentId, ...(expiresIn !== undefined && { expiresIn }) }).catch((error) => {
      opened = undefined
      throw error
    })
    return opened
  }
}
