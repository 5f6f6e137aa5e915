import { type Network, networkByName } from '@purser/protocol'
import type { Chain, NonceState } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { ActingCtx } from '../../platform/ctx.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import type { Detach, RecurringTask } from '../../platform/recurring-task.ts'
import { withShareOwners } from '../plans/index.ts'
import { findUse as findRelayUse, nonceStates, type RelayPayload } from '../relayer/index.ts'
import { expiredReasonOf } from './new-payment.ts'
import type { Ctx, Deps } from './ports.ts'
import { recordFailed, recordSettled } from './settlement-outcome.ts'
import { type CheckedRow, deleteClaims, isAnyToCheck, listToCheck, setCheckAt } from './settlement-store.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
const againMs = 30_000
/** Most milliseconds that the chain's time may lag behind the clock. */
const graceMs = 60_000
/**
 * Most milliseconds after it was made for which a payment is read: payers may sign without an end, and its month is not archived before (decision
 * 0262).
 */
const watchedMsMax = 31 * 86_400_000

/**
 * Voids verified payments whose settlement nobody requested in time, which releases what they reserved. It keeps reading the
 * chain until their authorization has expired, since anybody who has it can still send it: money that moved is settled. A search for
 * the transaction of a used authorization may take long: no other network or organisation and no later run waits for it. Running it
 * twice is harmless: a payment leaves each status once.
 */
export const voidUnsettled: RecurringTask<Deps> = {
  name: 'payments.void-unsettled',
  everyMs: 1_000,
  isDue: ({ chains, clock }) =>
    isAnyToCheck(
      checkedOf(chains).map(({ name }) => name),
      clock.now(),
    ),
  async run(ctx, detach) {
    const searches: Promise<void>[] = []
    const check = async (network: Network): Promise<void> => {
      try {
        await checkDue(ctx, network, detach ?? ((search) => searches.push(search)))
      } catch (error) {
        const details = { err: error, network: network.name }
        ctx.log.warn(details, 'the chain could not be read for unsettled payments; they stay due')
      }
    }
    await Promise.all(checkedOf(ctx.chains).map(check))
    await Promise.all(searches)
  },
}

function checkedOf({ configured }: System['chains']): readonly Network[] {
  return configured.flatMap(({ name }) => networkByName(name) ?? []).filter(({ settlesEip3009 }) => settlesEip3009)
}

interface Checked {
  readonly row: CheckedRow
  readonly state: NonceState
}

/** Checks due payments. Those that the chain cannot decide yet become due later, so that they block none behind them. */
async function checkDue(ctx: System, network: Network, detach: Detach): Promise<void> {
  const { cursors, search } = ctx.unsettledChecks
  const due = { now: ctx.clock.now(), most: perTurnMax, cursors }
  const rows = await ctx.db.tx((tx) => listToCheck(tx, network.name, due), { readsInOrder: true })
  if (rows.length === 0) return
  const chain = ctx.chains.on(network)
  const states = await statesOf(chain, rows)
  const checked = rows.map((row, index): Checked => ({ row, state: states[index] ?? 'undecided' }))
  const { used = [], undecided = [], open = [], expired = [] } = Object.groupBy(checked, ({ state }) => state)
  await postpone(ctx, [...undecided, ...used])
  await voidUnused(ctx, [...open, ...expired])
  const usedRows = await withShareOwners(
    ctx.db,
    used.map(({ row }) => row),
  )
  detach(search(network.name, usedRows, (row) => recordUse(ctx, chain, row), detach.stopping))
}

/** Uses one transaction per organisation, so that one that waits does not block the others. */
async function voidUnused(
  ctx: ActingCtx & Pick<System, 'db' | 'log' | 'metrics'>,
  unused: readonly Checked[],
): Promise<void> {
  const byOrganisation = Map.groupBy(unused, ({ row }) => row.organisationId)
  for (const [organisationId, group] of inLockOrder(byOrganisation)) {
    await ctx.db
      .tx(async (tx) => {
        const voided = group.map((one) => ({ id: one.row.id, status: 'voided', reason: reasonOf(one) }) as const)
        await recordFailed(ctx, tx, voided, 'verified')
        // No block can include an authorization that has expired, and verify refuses it by its own clock: nothing is left to watch once both are past its end.
        const isOver = ({ row, state }: Checked) => state === 'expired' && row.validBefore <= ctx.clock.now()
        const isTooOld = ({ row }: Checked) => row.createdAt.getTime() + watchedMsMax < ctx.clock.now().getTime()
        const nextOf = (one: Checked) => (isOver(one) || isTooOld(one) ? null : nextCheckOf(ctx, one.row))
        await setCheckAt(
          tx,
          group.map((one) => ({ id: one.row.id, checkAt: nextOf(one) })),
        )
        await deleteClaims(
          tx,
          group.filter(isOver).map(({ row }) => row.id),
        )
      })
      .catch((error: unknown) =>
        ctx.log.error({ err: error, organisationId }, 'unsettled payments could not be voided; they stay due'),
      )
  }
}

function reasonOf({ row, state }: Checked): string {
  if (state === 'open') return 'not_settled_in_time'
  return expiredReasonOf(row.settlement)
}

/** Returns the time of the next check. The intervals double, and the last check comes after the end of the authorization. */
export function nextCheckOf(
  { clock }: Pick<System, 'clock'>,
  row: Pick<CheckedRow, 'createdAt' | 'validBefore'>,
): Date {
  const now = clock.now().getTime()
  const doubled = now + Math.max(againMs, now - row.createdAt.getTime())
  const end = row.validBefore.getTime() + graceMs
  return instantOf(end > now ? Math.min(doubled, end) : now + againMs)
}

async function postpone(ctx: Pick<System, 'clock' | 'db'>, checked: readonly Checked[]): Promise<void> {
  if (checked.length === 0) return
  const checkAt = instantOf(ctx.clock.now().getTime() + againMs)
  await setCheckAt(
    ctx.db,
    checked.map(({ row: { id } }) => ({ id, checkAt })),
  )
}

/**
 * Records the use of an authorization, which anybody may send: the payment is settled if the use moved the money, and ends
 * otherwise.
 */
async function recordUse(
  ctx: ActingCtx & Pick<System, 'db' | 'log' | 'metrics'>,
  chain: Chain,
  row: CheckedRow,
): Promise<void> {
  try {
    const use = await findUse({ db: ctx.db, chain }, row)
    if (use === 'undecided') return
    await ctx.db.tx(async (tx) => {
      if ('txHash' in use) await recordSettled(ctx, tx, [{ id: row.id, txHash: use.txHash, gasNanoUsd: 0n }])
      else {
        await recordFailed(ctx, tx, [{ id: row.id, status: 'settlement_failed', reason: use.reason }], 'verified')
        await setCheckAt(tx, [{ id: row.id, checkAt: null }])
      }
    })
  } catch (error) {
    ctx.log.warn(
      { err: error, paymentId: row.id },
      'the chain could not be read for a payment; it is checked again later',
    )
  }
}

/** Returns the quorum's report of each payment's nonce, with one call to each node per kind of nonce. */
function statesOf(chain: Chain, rows: readonly CheckedRow[]): Promise<readonly NonceState[]> {
  return nonceStates(chain, rows.map(payloadOf))
}

/** The signed payload that moves the money of a payment. */
export function payloadOf({ asset, settlement }: Pick<CheckedRow, 'asset' | 'settlement'>): RelayPayload {
  return settlement.kind === 'permit2' ? settlement : { ...settlement, token: asset }
}

/** The transaction that moved the money, or why the nonce was used without it. */
type NonceUse = { readonly txHash: string } | { readonly reason: string } | 'undecided'

async function findUse(on: Parameters<typeof findRelayUse>[0], row: CheckedRow): Promise<NonceUse> {
  const use = await findRelayUse(on, payloadOf(row), { since: row.createdAt })
  if (use.outcome === 'settled') return { txHash: use.transactionHash }
  return use.outcome === 'lost' ? { reason: use.fault.reason } : 'undecided'
}
