import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import { type DueDeposit, lockScreenedDeposit, markDepositScreened } from './deposit-store.ts'
import { publishFlag } from './flag-events.ts'
import { dueAfter, isOnHold, nextStatus } from './next.ts'
import { type Asked, askSources, evidenceOf, recordScreening, type WorkCtx } from './screen.ts'
import { followTaint } from './taint.ts'

/**
 * Screens who sent these deposits. What is left of a flagged sender's amount is frozen in managed wallets, wherever it was moved; for a wallet that
 * the customer holds it is only written down. Running it again asks again.
 */
export async function screenDeposits(ctx: WorkCtx, deposits: readonly DueDeposit[]): Promise<void> {
  if (deposits.length === 0) return
  const asked = await askSources(ctx, [...new Set(deposits.map(({ from }) => from))])
  for (const deposit of deposits) await writeDeposit(ctx, deposit, asked)
}

async function writeDeposit(work: WorkCtx, deposit: DueDeposit, { round, ticket }: Asked): Promise<void> {
  const ctx = forTenant(work, deposit)
  const found = round.of(deposit.from, deposit.environment)
  await ctx.db.tx(async (tx) => {
    await lockNetwork(tx, deposit.network)
    const known = await lockScreenedDeposit(tx, deposit, deposit.id)
    if (known === undefined) return
    const now = ctx.clock.now()
    const isCurrentList = await ctx.screening.isCurrentList(tx, round.listVersion)
    const amlStatus = nextStatus(known, { result: found.result, ticket, isCurrentList })
    if (amlStatus === 'again') return
    const sinceMs = now.getTime() - known.createdAt.getTime()
    const dueAt = amlStatus === 'clear' ? null : dueAfter(now, { id: deposit.id, ...found, sinceMs })
    await markDepositScreened(tx, deposit, deposit.id, { amlStatus, isOnHold: isOnHold(found), dueAt })
    await recordScreening(ctx, tx, { subjectId: deposit.id, address: deposit.from, found, round })
    const { network, walletId } = deposit
    await followTaint(tx, [{ tenant: deposit, walletId, network, token: known.token }])
    // A flag that booking gave was not announced: no screening of the row was written down yet.
    const from = known.amlTicket === 0n ? 'pending' : known.amlStatus
    await announce(ctx, tx, deposit, { from, to: amlStatus, evidence: evidenceOf(found, round) })
  })
}

interface Change {
  readonly from: string
  readonly to: string
  readonly evidence: ReturnType<typeof evidenceOf>
}

/** Writes that a flag came or went into the audit log, and tells the organisation. */
async function announce(ctx: Ctx, tx: Tx, deposit: DueDeposit, { from, to, evidence }: Change): Promise<void> {
  if (from === to || (from !== 'flagged' && to !== 'flagged')) return
  const { id, walletId, from: sender } = deposit
  const isFrozen = to === 'flagged' && !walletId.startsWith('byw_')
  const details = { from, to, walletId, sender, isFrozen, ...evidence }
  await ctx.audit(tx, { action: 'wallets.transactions.screen', target: id, details })
  await publishFlag(ctx, tx, {
    walletId,
    address: sender,
    transactionId: id,
    isFlagged: to === 'flagged',
    reason: evidence.reason,
  })
}
