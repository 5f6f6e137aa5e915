import type { Clock } from '../../platform/clock.ts'
import { type Call, placeOwnerOf } from '../../platform/ctx.ts'
import { createLimiter } from '../../platform/http/limits.ts'
import { type Plan, unlimited } from '../plans/index.ts'
import type { UnsoldLimit } from './ports.ts'

/** Payments of one owner and environment that may end unsold a day, as a multiple of those that its plan includes per month. */
const monthsPerDay = 10
/** Payments of a plan without a limit that may end unsold a day. */
const unlimitedPerDay = 1_000_000
/** Payments of one payer are at most one part in this many of them. */
const payerShare = 10
const daySeconds = 86_400

type Caller = Pick<Call, 'tenant' | 'placeOwner'>

/** Creates the limit of a process, in parts of an allowance: each plan's payment takes the more of them, the fewer it may have. */
export function createUnsoldLimit(clock: Clock): UnsoldLimit {
  const parts = (whole: number) => createLimiter({ perSecond: whole / daySeconds, burst: whole }, clock, 'its-burst')
  const ofOwners = parts(unlimitedPerDay)
  const ofPayers = parts(unlimitedPerDay / payerShare)
  const ownerOf = (caller: Caller) => `${placeOwnerOf(caller)}/${caller.tenant.environment}`
  const payerOf = ({ tenant }: Caller, payer: string) =>
    `${tenant.organisationId}/${tenant.environment}/${payer.toLowerCase()}`
  return {
    waitOf(caller) {
      const { admitted, resetSeconds } = ofOwners(ownerOf(caller), 0)
      return admitted ? undefined : resetSeconds
    },
    isUsedUpBy: (caller, payer) => !ofPayers(payerOf(caller, payer), 0).admitted,
    count(caller, plan, payers) {
      const cost = partsOf(plan)
      ofOwners.owe(ownerOf(caller), cost * payers.length)
      for (const payer of payers) if (payer !== null) ofPayers.owe(payerOf(caller, payer), cost)
    },
  }
}

function partsOf({ paymentsPerMonth }: Plan): number {
  return paymentsPerMonth === unlimited ? 1 : unlimitedPerDay / (paymentsPerMonth * monthsPerDay)
}
