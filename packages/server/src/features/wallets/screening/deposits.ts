import type { Screened } from '../../../partners/screening/port.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import type { Ctx } from '../ports.ts'
import { type DueDeposit, lockScreenedDeposit, markDepositScreened } from './deposit-store.ts'
import { publishFlag } from './flag-events.ts'
import { dueAfter, isOnHold, nextStatus } from './next.ts'
import { evidenceOf, querySources, recordScreening, type SourceAnswers, type WorkCtx } from './screen.ts'
import { followTaint } from './taint.ts'
import type { Change } from './taint-store.ts'

/**
 * Screens the senders of these deposits. The rest of a flagged sender's amount is frozen in managed wallets, wherever it moved; for a
 * wallet of the customer it is only recorded. Running it again screens again.
 */
export async function screenDeposits(ctx: WorkCtx, deposits: readonly DueDeposit[]): Promise<void> {
  if (deposits.length === 0) return
  const requested = await querySources(ctx, [...new Set(deposits.map(({ from }) => from))])
  const mayFlag = ({ from, environment, amlStatus }: DueDeposit): boolean =>
    amlStatus === 'flagged' || requested.round.of(from, environment).result === 'flagged'
  const stored = (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) =>
      ctx.log.error({ err: error }, 'the screening of deposits could not be stored; they stay due'),
    )
  for (const deposit of deposits) if (!mayFlag(deposit)) await stored(writeUnflagged(ctx, deposit, requested))
  const flags = Map.groupBy(
    deposits.filter(mayFlag),
    ({ network, organisationId, environment }) => `${network}/${organisationId}/${environment}`,
  )
  for (const [, own] of inLockOrder(flags)) await stored(writeFlags(ctx, own, requested))
}

/** Stores a screening that neither sets nor ends a flag, under the deposit's lock only: the watcher of the network need not wait. */
async function writeUnflagged(work: WorkCtx, deposit: DueDeposit, requested: SourceAnswers): Promise<void> {
  const ctx = forTenant(work, deposit)
  await ctx.db.tx(async (tx) => {
    const known = await lockScreenedDeposit(tx, deposit, deposit.id)
    // Flagged meanwhile: it stays due, and is then screened under the network's lock.
    if (known === undefined || known.amlStatus === 'flagged') return
    await writeScreening(ctx, tx, { deposit, known, requested })
  })
}

/**
 * Stores screenings of one organisation's deposits on a network, some of which set or end a flag, and traces the money once for all of
 * them.
 */
async function writeFlags(work: WorkCtx, deposits: readonly DueDeposit[], requested: SourceAnswers): Promise<void> {
  const [first] = deposits
  if (first === undefined) return
  const ctx = forTenant(work, first)
  await ctx.db.tx(async (tx) => {
    await lockNetwork(tx, first.network)
    const flags: Flagging[] = []
    for (const deposit of [...deposits].sort(byId)) {
      const known = await lockScreenedDeposit(tx, deposit, deposit.id)
      const flagging = known && (await writeScreening(ctx, tx, { deposit, known, requested }))
      if (flagging !== undefined) flags.push(flagging)
    }
    await followTaint(
      tx,
      flags.flatMap(({ change }) => change ?? []),
      'all',
    )
    for (const flagging of flags) await announce(ctx, tx, flagging)
  })
}

function byId(left: DueDeposit, right: DueDeposit): number {
  return left.id < right.id ? -1 : 1
}

/** A screening that set, confirmed or ended a flag, without its event yet. */
interface Flagging {
  readonly deposit: DueDeposit
  /** Undefined if booking had set the flag and traced the money. */
  readonly change: Change | undefined
  /** The status of the last event. */
  readonly from: string
  readonly to: string
  readonly evidence: ReturnType<typeof evidenceOf>
}

interface Writing {
  readonly deposit: DueDeposit
  readonly known: NonNullable<Awaited<ReturnType<typeof lockScreenedDeposit>>>
  readonly requested: SourceAnswers
}

/** Stores the screening of a deposit whose row is locked; returns what became of its flag, if it has or had one. */
async function writeScreening(
  ctx: Ctx,
  tx: Tx,
  { deposit, known, requested: { round, ticket } }: Writing,
): Promise<Flagging | undefined> {
  const { id, walletId, network } = deposit
  const found: Screened = round.of(deposit.from, deposit.environment)
  const now = ctx.clock.now()
  const isCurrentList = await ctx.screening.isCurrentList(tx, round.listVersion)
  const to = nextStatus(known, { result: found.result, ticket, isCurrentList })
  if (to === 'again') return undefined
  const sinceMs = now.getTime() - known.createdAt.getTime()
  const dueAt = to === 'clear' ? null : dueAfter(now, { id, ...found, sinceMs })
  await markDepositScreened(tx, deposit, id, { amlStatus: to, isOnHold: isOnHold(found), dueAt })
  await recordScreening(ctx, tx, { subjectId: id, address: deposit.from, found, round })
  // A flag that booking set has no event yet: no screening of the row was stored.
  const from = known.amlTicket === 0n ? 'pending' : known.amlStatus
  if (known.amlStatus !== 'flagged' && to !== 'flagged') return undefined
  const place = { tenant: ctx.tenant, walletId, network, token: known.token }
  const change = known.amlStatus === to ? undefined : { place, block: known.block }
  return { deposit, change, from, to, evidence: evidenceOf(found, round) }
}

/** Records the change of a flag in the audit log, and publishes its event. */
async function announce(ctx: Ctx, tx: Tx, { deposit, from, to, evidence }: Flagging): Promise<void> {
  // A flag that booking set and the first screening ended was never reported.
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
