import { formatAmount } from '@purser/protocol'
import { appendAudit } from '../../../platform/audit.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { Id } from '../../../platform/ids.ts'
import type { Ctx, Deps } from '../ports.ts'
import { endHolds, findTenantOfHold, hasLiveHolds, type ReleasedDeposit } from './hold-store.ts'
import type { WorkCtx } from './screen.ts'

/** Most deposits of one audit record. */
const batchMax = 500

/** The operator, without an organisation. */
export type HoldOperator = Pick<Ctx, 'db' | 'clock' | 'random' | 'actor' | 'requestId'>

/**
 * Ends the hold of a deposit, or of all deposits on hold at a managed wallet, on the operator's decision; returns how many. Each batch is
 * recorded in the audit log of its organisation in the transaction that released it. The deposit stays `pending` and is screened like any
 * other: a sender who is flagged later freezes the rest. Frozen money is not on hold and is not released.
 */
export async function releaseHolds(
  operator: HoldOperator,
  subjectId: Id<'wtx'> | Id<'mwt'> | Id<'cad'>,
  reason: string | undefined,
): Promise<number> {
  const tenant = await findTenantOfHold(operator.db, subjectId)
  if (tenant === undefined) return 0
  const releaseBatch = async (tx: Tx): Promise<number> => {
    const released = await endHolds(tx, tenant, subjectId, batchMax)
    if (released.length === 0) return 0
    const details = { ...(reason !== undefined && { reason }), deposits: released.map(shown) }
    const { clock, random, actor, requestId } = operator
    const entry = { action: 'wallets.holds.release', target: subjectId, details }
    await appendAudit({ clock, random, actor, requestId, tenant }, tx, entry)
    return released.length
  }
  let sum = 0
  for (;;) {
    const count = await operator.db.tx(releaseBatch)
    sum += count
    if (count < batchMax) return sum
  }
}

function shown({ id, walletId, network, tokenSymbol, decimals, rawAmount, from }: ReleasedDeposit) {
  return { id, walletId, network, amount: formatAmount(rawAmount, decimals), tokenSymbol, sender: from }
}

/** A deposit that was not screened for this long indicates a fault, and not only a queue. */
const unscreenedMsMax = 300_000

/** Whether live deposits are on hold because neither the list nor the oracle can screen their senders, or because nothing screens them. */
export function areLiveDepositsOnHold({ db, clock }: Pick<Deps, 'db' | 'clock'>): Promise<boolean> {
  return hasLiveHolds(db, instantOf(clock.now().getTime() - unscreenedMsMax))
}

/** Warns the operator while live deposits are on hold. */
export async function reportHolds(ctx: Pick<WorkCtx, 'db' | 'clock' | 'log' | 'metrics'>): Promise<void> {
  const isHeld = await areLiveDepositsOnHold(ctx)
  ctx.metrics
    .gauge('purser_live_deposits_on_hold', '1 while screening keeps live deposits on hold.')
    .set(isHeld ? 1 : 0)
  if (!isHeld) return
  const how = 'refresh the sanctions list, restore the oracle’s node, or run purser admin release-hold'
  ctx.log.warn(
    { how },
    'live deposits are on hold: neither a fresh sanctions list nor the oracle can screen their senders',
  )
}
