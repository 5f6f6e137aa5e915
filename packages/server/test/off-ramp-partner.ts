import type { Address } from '@purser/protocol'
import type { Deps } from '../src/modules.ts'
import type { OffRamp, Payout } from '../src/partners/offramp/port.ts'

/** A partner that the test controls. It counts its calls. */
export function aPartner(says: { payout?: () => Partial<Payout>; fails?: () => boolean } = {}) {
  const payouts = new Map<string, Payout>()
  const requested = { payouts: 0 }
  const reported = (payout: Payout): Payout => ({ ...payout, ...says.payout?.() })
  const partner: OffRamp = {
    name: 'sandbox',
    hasCustomers: false,
    whyNotTaken: () => undefined,
    whyNotReference: () => undefined,
    deleteAccount: async () => undefined,
    createAccount: async ({ key }) => ({ ok: true, value: { accountId: key, isActive: true } }),
    async createPayout({ key, rawAmount }) {
      requested.payouts += 1
      const address = `0x${(requested.payouts + 4096 * Date.now()).toString(16).padStart(40, '1')}` as Address
      const state = { state: 'pending_conversion', partnerState: 'waiting', awaitsDeposit: true } as const
      const known = payouts.get(key) ?? { payoutId: `p-${key}`, deposit: { address, rawAmount }, ...state }
      payouts.set(key, known)
      if (says.fails?.() === true) throw new Error('the answer was lost')
      return { ok: true, value: reported(known) }
    },
    async readPayout(payoutId) {
      const known = payouts.get(payoutId.slice(2))
      return known === undefined ? undefined : reported(known)
    },
  }
  return { partner, requested, payouts }
}

/** Thrown by a process that has died. */
export class Death extends Error {}

/** The deps of a process whose n-th step and every later one fail, as for one that has died. */
export function mortal(deps: Deps, lifetime: number): Deps {
  let steps = 0
  const around = async <T>(doing: () => Promise<T>): Promise<T> => {
    if (++steps >= lifetime) throw new Death('this process has died')
    const result = await doing()
    if (++steps >= lifetime) throw new Death('this process has died')
    return result
  }
  const { db, offRamps } = deps
  const ramp = offRamps.test
  return {
    ...deps,
    db: {
      ...db,
      one: (row, statement) => around(() => db.one(row, statement)),
      maybeOne: (row, statement) => around(() => db.maybeOne(row, statement)),
      many: (row, statement) => around(() => db.many(row, statement)),
      run: (statement) => around(() => db.run(statement)),
      tx: (doing) => around(() => db.tx((tx) => around(() => doing(tx)))),
    },
    offRamps: {
      ...offRamps,
      test: ramp && {
        ...ramp,
        createAccount: (requested) => around(() => ramp.createAccount(requested)),
        createPayout: (requested) => around(() => ramp.createPayout(requested)),
        readPayout: (payoutId, requested) => around(() => ramp.readPayout(payoutId, requested)),
      },
    },
  }
}
