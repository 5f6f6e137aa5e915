import { forTenant } from '../../../platform/work/runner.ts'
import { type DueDeposit, lockScreenedDeposit, markDepositScreened } from './deposit-store.ts'
import { dueAfter, nextStatus } from './next.ts'
import { type Asked, askSources, evidenceOf, recordScreening, type WorkCtx } from './screen.ts'

/**
 * Screens who sent these deposits. A flagged sender's amount is frozen in a managed wallet, all of it and nothing else; for a wallet that
 * the customer holds it is only written down, since nobody here can hold it back. Running it again asks again.
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
    const known = await lockScreenedDeposit(tx, deposit, deposit.id)
    if (known === undefined) return
    const now = ctx.clock.now()
    const isCurrentList = await ctx.screening.isCurrentList(tx, round.listVersion)
    const amlStatus = nextStatus(known, { result: found.result, ticket, isCurrentList })
    if (amlStatus === 'again') return
    const freezes = amlStatus === 'flagged' && !deposit.walletId.startsWith('byw_')
    const sinceMs = now.getTime() - known.createdAt.getTime()
    const dueAt = amlStatus === 'clear' ? null : dueAfter(now, { id: deposit.id, result: found.result, sinceMs })
    await markDepositScreened(tx, deposit, deposit.id, { amlStatus, freezes, dueAt })
    await recordScreening(ctx, tx, { subjectId: deposit.id, address: deposit.from, found, round })
    if (amlStatus === known.amlStatus || (amlStatus !== 'flagged' && known.amlStatus !== 'flagged')) return
    const change = {
      from: known.amlStatus,
      to: amlStatus,
      walletId: deposit.walletId,
      sender: deposit.from,
      isFrozen: freezes,
    }
    const details = { ...change, ...evidenceOf(found, round) }
    await ctx.audit(tx, { action: 'wallets.transactions.screen', target: deposit.id, details })
  })
}
