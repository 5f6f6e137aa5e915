import { emptyBudget } from './budget.ts'
import type { Ledger } from './ledger.ts'

/** The error of `signed` for a reservation that is no longer there. The credential must not be sent. */
export function releasedError(id: string): Error {
  return new Error(`The reservation ${id} was released, so its payment is not sent.`)
}

/**
 * Returns a ledger in this process's memory. Its steps are synchronous, so simultaneous calls cannot exceed a limit
 * together. `@purser/sdk/ledgers` has ledgers that outlive the process.
 *
 * @example
 * import { createPayingFetch, memoryLedger, type Signer } from '@purser/sdk/pay'
 *
 * export function fetchesOf(signers: readonly Signer[]) {
 *   const ledger = memoryLedger() // one budget for all of them
 *   return signers.map((signer) => createPayingFetch({ signer, ledger, limits: { perCall: '0.05', perDay: '5' } }))
 * }
 */
export function memoryLedger(): Ledger {
  const budget = emptyBudget()
  return {
    reserve: async (request) => budget.reserve(request),
    signed: async (id, credential) => {
      if (!budget.signed(id, credential)) throw releasedError(id)
    },
    spent: async (id) => budget.spent(id),
    release: async (id) => budget.release(id),
    find: async (purchase) => budget.find(purchase),
    unfinished: async () => budget.unfinished(),
  }
}
