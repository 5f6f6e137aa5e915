import type { ChainTransactionId } from '../../chain/port.ts'
import type { Tx } from '../../platform/db/db.ts'
import { insertReservations, type NewReservation } from '../funds/index.ts'
import { enterUnit, type Unit } from './approval-store.ts'
import { wantsOf } from './claim.ts'
import type { TransferPlan } from './planned.ts'
import type { Ctx } from './ports.ts'
import { setNextPollAt } from './route-store.ts'
import { insertSteps, type TransferId, transferPurpose } from './store.ts'

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
  const own = made.filter(({ plan }) => plan.steps.length > 0)
  if (own.length > 0)
    await insertSteps(
      tx,
      own.flatMap(({ transferId, plan: { steps } }) =>
        steps.map(({ to: toAddress, ...step }, position) => {
          const transactionId = position === 0 ? (firsts.get(transferId) ?? null) : null
          return { transferId, position, ...step, toAddress, transactionId }
        }),
      ),
    )
  await reserve(ctx, tx, made, { firsts, nonces })
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
      wantsOf(ctx.tenant, plan).map(({ place, part, ...want }): NewReservation => {
        const { network, owner, coin } = place
        const transactionId = part === 0 ? (firsts.get(transferId) ?? null) : null
        const authorizationNonce = nonces.get(transferId) ?? null
        const row = { network: network.name, owner, asset: coin.symbol, subjectId: transferId, part }
        return { ...row, ...want, transactionId, authorizationNonce }
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

/** Undefined if nothing is approved; on Tempo approval and call are one transaction. */
export function unitOf({ network, source, coin, steps }: TransferPlan): Unit | undefined {
  const call = steps.find(({ kind }) => kind === 'partner')
  if (call === undefined || coin.address === undefined || !steps.some(({ kind }) => kind === 'approve'))
    return undefined
  return { network: network.name, owner: source.address, token: coin.address, spender: call.to }
}
