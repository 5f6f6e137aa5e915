import type { Clock } from '../../platform/clock.ts'
import { type Call, shareOwnerOf } from '../../platform/ctx.ts'
import { type Admission, createLimiter } from '../../platform/http/limits.ts'
import { type Plan, unlimited } from '../plans/index.ts'
import type { ReleaseLimit } from './ports.ts'

/** Payments of one owner and environment that may be released a day, as a multiple of those that its plan includes per month. */
const monthsPerDay = 10
/** The least number of payments that may be released a day, for small plans: a seller may refuse more requests a day than its plan has payments a month. */
const releasedPerDayMin = 10_000
/** Payments of a plan without a limit that may be released a day. */
const unlimitedPerDay = 1_000_000
/** The released payments of one payer are at most a tenth of those of all payers. */
const payerShare = 10
const daySeconds = 86_400

type Caller = Pick<Call, 'tenant' | 'shareOwner'>

/** Creates the limit on releases of one process. All plans share one token bucket; a release costs more tokens on a smaller plan. */
export function createReleaseLimit(clock: Clock, perDayMin = releasedPerDayMin): ReleaseLimit {
  const parts = (whole: number) => createLimiter({ perSecond: whole / daySeconds, burst: whole }, clock, 'its-burst')
  const ofOwners = parts(unlimitedPerDay)
  const ofPayers = parts(unlimitedPerDay / payerShare)
  const ownerOf = (caller: Caller) => `${shareOwnerOf(caller)}/${caller.tenant.environment}`
  const payerOf = ({ tenant }: Caller, payer: string) =>
    `${tenant.organisationId}/${tenant.environment}/${payer.toLowerCase()}`
  const partsOf = ({ paymentsPerMonth }: Plan) =>
    paymentsPerMonth === unlimited ? 1 : unlimitedPerDay / Math.max(perDayMin, paymentsPerMonth * monthsPerDay)
  return {
    waitOf: (caller) => waitIn(ofOwners(ownerOf(caller), 0)),
    waitOfPayer: (caller, payer) => waitIn(ofPayers(payerOf(caller, payer), 0)),
    count(caller, plan, payer) {
      const cost = partsOf(plan)
      ofOwners.owe(ownerOf(caller), cost)
      if (payer !== null) ofPayers.owe(payerOf(caller, payer), cost)
    },
  }
}

function waitIn({ admitted, resetSeconds }: Admission): number | undefined {
  return admitted ? undefined : resetSeconds
}
