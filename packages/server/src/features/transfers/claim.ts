import { bytesOf, type Claim, type NewReservation, type Place, plainFee, type Want } from '../funds/index.ts'
import type { Gas } from '../wallets/index.ts'
import type { PlannedStep, TransferPlan } from './planned.ts'

type Planned = Pick<TransferPlan, 'source' | 'network' | 'coin' | 'rawAmount' | 'steps' | 'snapshot'>
type Tenant = Place['tenant']

/** Reservation of one step of a transfer; a gasless transfer has no steps and reserves its token as part 0. */
export interface PlannedWant extends Want {
  readonly part: number
  readonly reason: NewReservation['reason']
}

/** All reservations of a planned transfer: its token, and the coin or token that pays for the gas of each step. */
export function wantsOf(tenant: Tenant, plan: Planned, except?: string): readonly PlannedWant[] {
  const { network, coin, rawAmount, steps } = plan
  const token: PlannedWant = {
    place: { ...placeOf(tenant, plan, 'source', coin), except },
    part: Math.max(0, steps.length - 1),
    reason: 'transfer',
    rawAmount,
    gasLimit: 0n,
    dataBytes: 0,
  }
  if (steps.length === 0) return [token]
  const { nativeCoin } = network
  if (nativeCoin === null) return steps.map((step) => ({ ...token, ...gasOf(step) }))
  const native = { ...nativeCoin, address: undefined }
  const paid = steps.map((step, part): PlannedWant => {
    const payer = step.kind === 'top-up' ? 'master' : 'source'
    const isAmount = coin.address === undefined && step.kind === 'send'
    const reason = step.kind === 'top-up' ? 'top-up' : isAmount ? 'transfer' : 'gas'
    const place = { ...placeOf(tenant, plan, payer, native), except }
    return { place, part, reason, rawAmount: step.value, ...gasOf(step) }
  })
  return coin.address === undefined ? paid : [token, ...paid]
}

/** The transfer as a claim on its snapshot; `except` is a subject that has already reserved the same amounts. */
export function claimOf(tenant: Tenant, plan: Planned, except?: string): Claim {
  const { snapshot, network, steps } = plan
  const topUp = steps.find(({ kind }) => kind === 'top-up')
  const native = network.nativeCoin === null ? undefined : { ...network.nativeCoin, address: undefined }
  const brings =
    topUp === undefined || native === undefined
      ? undefined
      : { place: placeOf(tenant, plan, 'source', native), rawAmount: topUp.value }
  return { snapshot, wants: wantsOf(tenant, plan, except), brings }
}

function gasOf({ gasLimit, data }: PlannedStep) {
  return { gasLimit, dataBytes: bytesOf(data) }
}

function placeOf(tenant: Tenant, { source, network }: Planned, payer: 'source' | 'master', coin: Place['coin']): Place {
  return payer === 'source'
    ? { tenant, network, walletId: source.id, owner: source.address, coin }
    : { tenant, network, walletId: source.masterWalletId, owner: source.masterAddress, coin }
}

/** Maximum cost of the transfer in addition to its amount. Gas that a child pays from its top-up counts as the top-up. */
export function gasCostOf({
  steps,
  rawFee,
  feeCoin,
  snapshot,
}: Pick<TransferPlan, 'steps' | 'rawFee' | 'feeCoin' | 'snapshot'>): Gas | undefined {
  if (steps.length === 0) return undefined
  const topUp = steps.find(({ kind }) => kind === 'top-up')
  const rawAmount = topUp === undefined ? rawFee : topUp.value + plainFee(snapshot.fees)
  return { token: feeCoin.symbol, rawAmount, decimals: feeCoin.decimals, isOfMaster: topUp !== undefined }
}
