import type { Session } from '../sessions.ts'
import { problemAnswer } from './answers.ts'
import { askToPay, isMisconfigured, type Sale } from './ask.ts'
import type { Admission } from './core.ts'
import { openVault } from './vault.ts'

/**
 * Decides about a request that shows a session in place of a payment. A session that opens nothing is asked to pay; without a
 * clear answer from Purser the route stays closed.
 */
export async function enter(sale: Sale, token: string): Promise<Admission> {
  const { till, resource } = sale
  try {
    const session = await till.sessions.check(token, new URL(resource).host)
    if (session !== undefined) return entered(sale, session)
  } catch (error) {
    till.onFault({ stage: 'session', error })
    const code = isMisconfigured(error) ? 'payments-misconfigured' : 'payments-unavailable'
    return { kind: 'refused', answer: problemAnswer(code, 5) }
  }
  return { kind: 'refused', answer: await askToPay(sale) }
}

/** Paid for before: there is nothing to settle, and nothing to tell the payer. */
function entered({ till, route }: Sale, session: Session): Admission {
  return {
    kind: 'paid',
    payment: undefined,
    session,
    vault: openVault(till.purser, async () => session.vaultId),
    bodyBytesMax: route.bodyBytesMax,
    conclude: async () => ({
      kind: 'release',
      headers: [],
      keep: undefined,
      delivered: () => {},
      undelivered: () => {},
    }),
    tooLarge: () => {
      till.onFault({ stage: 'handler', error: new RangeError('The answer exceeds bodyBytesMax.') })
      return problemAnswer('response-too-large')
    },
    failed: () => {},
    abandon: () => true,
  }
}
