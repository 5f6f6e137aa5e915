import type { Purser } from '../client.ts'
import type { VerifiedPayment } from '../payments.ts'
import type { OpenedSession } from '../sessions.ts'
import type { Sale } from './ask.ts'
import { sessionHeader } from './sessions.ts'
import { openVault, type PaidVault } from './vault.ts'

/** What a payment buys beside the handler's answer. */
export interface Grant {
  readonly vault: PaidVault
  /** The header with the session, where the route gives one. Never rejects. */
  readonly sessionHeaders: () => Promise<readonly (readonly [name: string, value: string])[]>
}

/**
 * The vault of a payment, made when it is used, and its session. Both are Purser's one session of the payment; where the route gives
 * none out, its token goes no further. A payer whose session cannot be opened has the goods all the same, and pays for the next call.
 */
export function grantOf({ till, route }: Sale, payment: VerifiedPayment): Grant {
  const { purser, onFault } = till
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

/** The session of a payment, opened when it is first asked for, and again only when that failed. */
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
