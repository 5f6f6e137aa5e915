import { type Network, networkByName } from '@purser/protocol'
import type { NonceState } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { inLockOrder } from '../../platform/db/lock-order.ts'
import type { Recurring } from '../../platform/job.ts'
import { close } from '../relayer/index.ts'
import { findUse, statesOf } from './nonce-state.ts'
import { endFailed, recordFailed, recordSettled } from './settlement-outcome.ts'
import { type CheckedRow, listToCheck, setCheckAt } from './void-store.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
const againMs = 30_000
/** The chain's time may be behind the clock by so much. */
const graceMs = 60_000

/**
 * Voids verified payments that nobody asked to settle in time, which gives back what they had reserved, and goes on reading the chain about
 * them until their authorization has ended, since whoever holds it can still send it: money that moved is settled. Harmless twice: a
 * payment leaves each status once.
 */
export const voidUnsettled: Recurring = {
  name: 'payments.void-unsettled',
  everyMs: 1_000,
  async run(ctx) {
    for (const { name } of ctx.chains.configured) {
      const network = networkByName(name)
      if (network === undefined || !network.settlesEip3009) continue
      await checkDue(ctx, network).catch((error: unknown) =>
        ctx.log.warn(
          { err: error, network: name },
          'the chain could not be read about unsettled payments; they stay due',
        ),
      )
    }
  },
}

interface Checked {
  readonly row: CheckedRow
  readonly state: NonceState
}

/** Those of which the chain cannot say anything yet are due again later, so that they keep none behind them waiting. */
async function checkDue(ctx: System, network: Network): Promise<void> {
  const rows = await listToCheck(ctx.db, network.name, ctx.clock.now(), perTurnMax)
  if (rows.length === 0) return
  const states = await statesOf(ctx.chains.on(network), rows)
  const checked = rows.map((row, index): Checked => ({ row, state: states[index] ?? 'undecided' }))
  const { used = [], undecided = [], open = [], expired = [] } = Object.groupBy(checked, ({ state }) => state)
  await postpone(ctx, undecided)
  await voidUnused(ctx, [...open, ...expired])
  for (const { row } of used) await recordUse(ctx, network, row)
}

/** One transaction for each organisation: what one of them waits for keeps no other waiting. */
async function voidUnused(ctx: System, unused: readonly Checked[]): Promise<void> {
  const byOrganisation = Map.groupBy(unused, ({ row }) => row.organisationId)
  for (const [organisationId, group] of inLockOrder(byOrganisation)) {
    await ctx.db
      .tx(async (tx) => {
        const voided = group.map((one) => ({ id: one.row.id, status: 'voided', reason: reasonOf(one) }) as const)
        const { closing } = await endFailed(ctx, tx, voided, 'verified')
        await setCheckAt(
          tx,
          group.map((one) => ({ id: one.row.id, checkAt: nextCheck(ctx, one) })),
        )
        await close(ctx, tx, [closing])
      })
      .catch((error: unknown) =>
        ctx.log.error({ err: error, organisationId }, 'unsettled payments could not be voided; they stay due'),
      )
  }
}

function reasonOf({ row, state }: Checked): string {
  if (state === 'open') return 'not_settled_in_time'
  return row.settlement.kind === 'permit2'
    ? 'permit2_deadline_expired'
    : 'invalid_exact_evm_payload_authorization_valid_before'
}

/** After twice the time each, and last after the end of the authorization. Never for one that no block can take any more. */
function nextCheck({ clock }: System, { row, state }: Checked): Date | null {
  if (state === 'expired') return null
  const now = clock.now().getTime()
  const doubled = now + Math.max(againMs, now - row.createdAt.getTime())
  const end = row.validBefore.getTime() + graceMs
  return instantOf(end > now ? Math.min(doubled, end) : now + againMs)
}

async function postpone(ctx: System, checked: readonly Checked[]): Promise<void> {
  if (checked.length === 0) return
  const checkAt = instantOf(ctx.clock.now().getTime() + againMs)
  await setCheckAt(
    ctx.db,
    checked.map(({ row: { id } }) => ({ id, checkAt })),
  )
}

/** Anybody may send a signed authorization: its use settles the payment where it moved the money, and ends it otherwise. */
async function recordUse(ctx: System, network: Network, row: CheckedRow): Promise<void> {
  await postpone(ctx, [{ row, state: 'used' }])
  try {
    const use = await findUse(ctx.chains.on(network), row)
    if (use === 'undecided') return
    await ctx.db.tx(async (tx) => {
      if ('txHash' in use) await recordSettled(ctx, tx, [{ id: row.id, txHash: use.txHash, gasNanoUsd: 0n }])
      else {
        await recordFailed(ctx, tx, [{ id: row.id, status: 'settlement_failed', reason: use.reason }], 'verified')
        await setCheckAt(tx, [{ id: row.id, checkAt: null }])
      }
    })
  } catch (error) {
    ctx.log.warn({ err: error, paymentId: row.id }, 'the chain could not be read about a payment; it is asked again')
  }
}
