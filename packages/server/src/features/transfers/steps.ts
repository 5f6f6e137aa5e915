import { bytesToHex, l1FeeOf, type Network, tokenByAddress } from '@purser/protocol'
import type { ChainTransactionId } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import {
  assignReservations,
  bytesOf,
  type Claim,
  type Coin,
  insertReservations,
  type NewReservation,
  nativeCoinOf,
  type Prices,
  plainFee,
  type WalletAsset,
  type Want,
} from '../funds/index.ts'
import { hasGasLeft, isWorthLess, reserveForEach } from '../plans/index.ts'
import { type Gas, gasOfGasless, isGasless, type SourceWallet } from '../wallets/index.ts'
import { insertGasless, type NewGasless } from './gasless/store.ts'
import { enterUnit, setNextPollAt, type Unit } from './partner-store.ts'
import type { Ctx, PlannedStep, TransferPlan } from './ports.ts'
import { assignStep, insertSteps, type StepRow, type TransferId, transferPurpose } from './store.ts'

interface Stored {
  readonly transferId: TransferId
  readonly plan: TransferPlan
}

/**
 * Stores the steps of transfers and their reservations. A first step gets its nonce now, a later step when it is due. A
 * transfer that waits for another one at the same contract gets no nonce yet. `nonces` are those of authorizations, for
 * transfers without steps. The caller has locked the owners.
 */
export async function storeSteps(
  ctx: Ctx,
  tx: Tx,
  made: readonly Stored[],
  nonces: ReadonlyMap<TransferId, Uint8Array> = new Map(),
): Promise<void> {
  const firsts = await planFirsts(ctx, tx, made)
  const steps = made.flatMap(({ transferId, plan }) =>
    plan.steps.map(({ to: toAddress, ...step }, position) => {
      const transactionId = position === 0 ? (firsts.get(transferId) ?? null) : null
      return { transferId, position, ...step, toAddress, transactionId }
    }),
  )
  // Sent together.
  await Promise.all([steps.length > 0 && insertSteps(tx, steps), reserve(ctx, tx, made, { firsts, nonces })])
}

/** Reserves the funds of transfers that do not begin yet: none of their steps has a nonce. The caller has locked the owners. */
export function reserveSteps(ctx: Ctx, tx: Tx, made: readonly Stored[]): Promise<void> {
  return reserve(ctx, tx, made, { firsts: new Map(), nonces: new Map() })
}

interface Begun {
  readonly firsts: ReadonlyMap<TransferId, ChainTransactionId>
  readonly nonces: ReadonlyMap<TransferId, Uint8Array>
}

function reserve(ctx: Ctx, tx: Tx, made: readonly Stored[], { firsts, nonces }: Begun): Promise<void> {
  return insertReservations(
    tx,
    ctx.tenant,
    made.flatMap(({ transferId, plan }) =>
      wantsOf(ctx.tenant, plan).map((want): NewReservation => {
        const transactionId = want.part === 0 ? (firsts.get(transferId) ?? null) : null
        const authorizationNonce = nonces.get(transferId) ?? null
        return { ...want, subjectId: transferId, transactionId, authorizationNonce }
      }),
    ),
  )
}

/** The transactions of the first steps of transfers that begin now. */
async function planFirsts(
  ctx: Ctx,
  tx: Tx,
  made: readonly Stored[],
): Promise<ReadonlyMap<TransferId, ChainTransactionId>> {
  const beginning: Stored[] = []
  for (const one of made) {
    if (one.plan.steps.length === 0) continue
    const unit = unitOf(one.plan)
    const isWaiting = unit !== undefined && (await enterUnit(tx, one.transferId, unit)) === 'waiting'
    if (isWaiting) await setNextPollAt(tx, one.transferId, ctx.clock.now())
    else beginning.push(one)
  }
  const planned = beginning.flatMap(({ plan: { network, steps } }) =>
    steps
      .slice(0, 1)
      .map((step) => ({ account: step.sender, planned: { ...step, network, purpose: transferPurpose } })),
  )
  if (planned.length === 0) return new Map()
  const transactionIds = await ctx.lanes.planAll(tx, planned)
  for (const network of new Set(beginning.map(({ plan }) => plan.network)))
    tx.afterCommit(() => ctx.lanes.notify(network))
  return new Map(
    beginning.flatMap(({ transferId }, index) => {
      const transactionId = transactionIds[index]
      return transactionId === undefined ? [] : [[transferId, transactionId]]
    }),
  )
}

/** Assigns a later step its transaction and nonce. The caller has locked the transfer and read that the step has none. */
export async function beginStep(
  { lanes }: Pick<Ctx, 'lanes'>,
  tx: Tx,
  step: StepRow,
  { network, gasLimit }: { readonly network: Network; readonly gasLimit: bigint },
): Promise<void> {
  const { transferId: subjectId, position: part, sender, toAddress: to, data, value } = step
  const planned = { network, to, data: bytesToHex(data), value, gasLimit, purpose: transferPurpose }
  const transactionId = await lanes.plan(tx, sender, planned)
  if (!(await assignStep(tx, step, transactionId))) throw new Error('a step of a transfer was given two transactions')
  await assignReservations(tx, { subjectId, part }, transactionId)
  tx.afterCommit(() => lanes.notify(network))
}

/** Undefined if nothing is approved; on Tempo approval and call are one transaction. */
export function unitOf({ network, source, coin, steps }: Planned): Unit | undefined {
  const call = steps.find(({ kind }) => kind === 'partner')
  if (call === undefined || coin.address === undefined || !steps.some(({ kind }) => kind === 'approve'))
    return undefined
  return { network: network.name, owner: source.address, token: coin.address, spender: call.to }
}

type Planned = Pick<TransferPlan, 'source' | 'network' | 'coin' | 'rawAmount' | 'steps' | 'snapshot'>
type Tenant = WalletAsset['tenant']

/** Reservation of one step of a transfer; a gasless transfer has no steps and reserves its token as part 0. */
interface PlannedWant extends Want {
  readonly part: number
  /** The contract that gets an allowance of the amount. */
  readonly spender?: string
  readonly reason: NewReservation['reason']
}

/** All reservations of a planned transfer: its token, and the coin or token that pays for the gas of each step. */
function wantsOf(tenant: Tenant, plan: Planned, except?: string): readonly PlannedWant[] {
  const { network, coin, rawAmount, steps } = plan
  const token: PlannedWant = {
    place: { ...placeOf(tenant, plan, { payer: 'source', coin }), except },
    part: Math.max(0, steps.length - 1),
    reason: 'transfer',
    rawAmount,
    gasLimit: 0n,
    dataBytes: 0,
  }
  if (steps.length === 0) return [token]
  const native = nativeCoinOf(network)
  if (native === undefined) return steps.map((step) => ({ ...token, ...gasOf(step) }))
  const paid = steps.map((step, part): PlannedWant => {
    const payer = step.kind === 'top-up' ? 'master' : 'source'
    const isAmount = coin.address === undefined && step.kind === 'send'
    const reason = step.kind === 'top-up' ? 'top-up' : isAmount ? 'transfer' : 'gas'
    const place = { ...placeOf(tenant, plan, { payer, coin: native }), except }
    return { place, part, reason, rawAmount: step.value, ...gasOf(step) }
  })
  return coin.address === undefined ? paid : [{ ...token, ...approvedTo(unitOf(plan)) }, ...paid]
}

function approvedTo(unit: Unit | undefined): Pick<PlannedWant, 'spender'> {
  return unit === undefined ? {} : { spender: unit.spender }
}

/** The transfer as a claim on its snapshot; `except` is a subject that has already reserved the same amounts. */
export function claimOf(tenant: Tenant, plan: Planned, except?: string): Claim {
  const { snapshot, network, steps } = plan
  const topUp = steps.find(({ kind }) => kind === 'top-up')
  const native = nativeCoinOf(network)
  const brings =
    topUp === undefined || native === undefined
      ? undefined
      : { place: placeOf(tenant, plan, { payer: 'source', coin: native }), rawAmount: topUp.value }
  return { snapshot, wants: wantsOf(tenant, plan, except), brings }
}

function gasOf({ gasLimit, data }: PlannedStep) {
  return { gasLimit, dataBytes: bytesOf(data) }
}

/** A coin of the wallet, or of the master that pays for its gas. */
export function placeOf(
  tenant: Tenant,
  { source, network }: Pick<TransferPlan, 'source' | 'network'>,
  { payer, coin }: { readonly payer: 'source' | 'master'; readonly coin: Coin },
): WalletAsset {
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

/**
 * How long a signature is valid. A transfer that the token refuses is reported as failed only after that, and its money stays reserved
 * until then.
 */
const validMs = 1_800_000
const nonceBytes = 32
/** Number of transactions that the settler must be able to pay for before it gets more work. */
const settlerTransactions = 10n
/** Call data of one transfer, and of the batch around it. */
const bytesOfGasless = 512

interface Payout {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
  readonly fees: Prices
}

/**
 * Whether the settler sends a child's transfer at the operator's cost: the token supports signed authorizations (EIP-3009) with a known
 * domain, the amount is worth the gas, the day's gas budget suffices, and the settler has gas. Otherwise the master sends the child its gas.
 */
export async function canBeGasless(
  ctx: Ctx,
  { source, network, coin, fees, rawAmount }: Payout & { readonly rawAmount: bigint },
): Promise<boolean> {
  if (source.address === source.masterAddress || coin.address === undefined) return false
  const token = tokenByAddress(network, coin.address)
  if (token === undefined || !isGasless(network, token)) return false
  if (ctx.chains.tokenDomainState(network, token) === 'wrong') return false
  await ctx.gasPrices.recentReads([network])
  const nanoUsd = ctx.gasPrices.lowestKnownCostOf(network, gasOfGasless)
  if (nanoUsd === undefined || isWorthLess(rawAmount, token, nanoUsd)) return false
  if (!(await hasGasLeft(ctx, network, gasOfGasless))) return false
  const [settler] = await ctx.chains.on(network).holdings([{ account: ctx.settlerAddress, tokens: [] }])
  const cost = gasOfGasless * fees.maxFee + l1FeeOf(fees.l1Fee, bytesOfGasless)
  return (settler?.native ?? 0n) >= cost * settlerTransactions
}

/** A gasless transfer, with the request that it belongs to. */
interface Wanted {
  readonly ctx: Pick<Ctx, 'tenant' | 'clock' | 'random' | 'gasPrices' | 'settleNanoUsdPerDayMax'>
  readonly transferId: TransferId
  readonly plan: {
    readonly source: Pick<SourceWallet, 'address'>
    readonly network: Network
    readonly coin: Pick<Coin, 'address'>
  }
}

/**
 * Stores messages for wallets of one tenant to sign, and charges their gas to the operator's budgets, in order of arrival until a budget is
 * used up. Returns the nonces of the stored ones, and the requests that found no budget.
 */
export async function storeGasless<T extends Wanted>(
  tx: Tx,
  wanted: readonly T[],
): Promise<{ readonly nonces: ReadonlyMap<TransferId, Uint8Array>; readonly over: readonly T[] }> {
  const groups = [...Map.groupBy(wanted, ({ plan }) => plan.network.name).values()].flatMap((some) => {
    const [first] = some
    if (first === undefined) return []
    const { ctx, plan } = first
    const nanoUsd = ctx.gasPrices.costOf(plan.network, gasOfGasless)
    return [{ ctx, network: plan.network, nanoUsd, wanted: some.length, some }]
  })
  const [first] = groups
  const fitting = first === undefined ? [] : await reserveForEach(first.ctx, tx, groups)
  const made = groups.flatMap(({ some, nanoUsd }, index) =>
    some.slice(0, fitting[index] ?? 0).map((one) => gaslessOf(one, nanoUsd)),
  )
  await insertGasless(tx, made)
  return {
    nonces: new Map(made.map(({ transferId, nonce }) => [transferId, nonce])),
    over: groups.flatMap(({ some }, index) => some.slice(fitting[index] ?? 0)),
  }
}

function gaslessOf(
  { ctx, transferId, plan: { source, network, coin } }: Wanted,
  gasReservedNanoUsd: bigint,
): NewGasless {
  if (coin.address === undefined) throw new Error('the native coin cannot be moved by a signature')
  const createdAt = ctx.clock.now()
  return {
    transferId,
    network: network.name,
    asset: coin.address,
    fromAddress: source.address,
    // Random: nobody can guess a nonce and use it first.
    nonce: ctx.random.bytes(nonceBytes),
    validBefore: instantOf(createdAt.getTime() + validMs),
    createdAt,
    gasReservedNanoUsd,
  }
}
