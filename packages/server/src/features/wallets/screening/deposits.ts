import type { Screened } from '../../../partners/screening/port.ts'
import { isDeadlock, isRefusedData, type Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { lockNetwork } from '../deposits/cursor-store.ts'
import type { Ctx } from '../ports.ts'
import {
  type DueDeposit,
  lockScreenedDeposits,
  markDepositsScreened,
  postponeDeposits,
  type ScreenedDeposit,
} from './deposit-store.ts'
import { publishFlag } from './flag-events.ts'
import { dueAfter, isOnHold, nextStatus, retryAfter } from './next.ts'
import { evidenceOf, querySources, recordScreenings, type SourceResults, type WorkCtx } from './screen.ts'
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
    amlStatus === 'flagged' || requested.batch.of(from, environment).result === 'flagged'
  const [flagging, others] = [deposits.filter(mayFlag), deposits.filter((deposit) => !mayFlag(deposit))]
  await storeEach(ctx, others, (some) => writeUnflagged(ctx, some, requested))
  const flags = Map.groupBy(
    flagging,
    ({ network, organisationId, environment }) => `${network}/${organisationId}/${environment}`,
  )
  for (const [, own] of inLockOrder(flags)) await storeEach(ctx, own, (some) => writeFlags(ctx, some, requested))
}

/**
 * Stores the screenings of deposits. A row that the database refuses fails alone. Deposits that could not be stored are due again later, so that none
 * waits behind them.
 */
async function storeEach(
  ctx: Pick<WorkCtx, 'clock' | 'db' | 'log'>,
  deposits: readonly DueDeposit[],
  write: (some: readonly DueDeposit[]) => Promise<void>,
): Promise<void> {
  try {
    await write(deposits)
  } catch (error) {
    if (deposits.length > 1 && (isRefusedData(error) || isDeadlock(error))) {
      for (const deposit of deposits) await storeEach(ctx, [deposit], write)
      return
    }
    ctx.log.error({ err: error }, 'the screening of deposits could not be stored; they are due again later')
    await postponeDeposits(ctx.db, deposits, retryAfter(ctx.clock.now())).catch((postponing: unknown) =>
      ctx.log.error({ err: postponing }, 'the screening of deposits could not be postponed'),
    )
  }
}

/**
 * Stores screenings of any organisations' deposits that neither set nor end a flag, under the locks of the deposits only: the watchers of the
 * networks need not wait. A deposit that was flagged meanwhile stays due, and is then screened under its network's lock.
 */
async function writeUnflagged(
  ctx: Pick<WorkCtx, 'clock' | 'db' | 'random' | 'screening'>,
  deposits: readonly DueDeposit[],
  requested: SourceResults,
): Promise<void> {
  if (deposits.length === 0) return
  await ctx.db.tx(async (tx) => {
    const locked = await lockDeposits(tx, deposits)
    await writeScreenings(
      ctx,
      tx,
      locked.filter(({ known }) => known.amlStatus !== 'flagged'),
      requested,
    )
  })
}

/**
 * Stores screenings of one organisation's deposits on a network, some of which set or end a flag, and traces the money once for all of
 * them.
 */
async function writeFlags(work: WorkCtx, deposits: readonly DueDeposit[], requested: SourceResults): Promise<void> {
  const [first] = deposits
  if (first === undefined) return
  const ctx = forTenant(work, first)
  await ctx.db.tx(async (tx) => {
    await lockNetwork(tx, first.network)
    const flags = await writeScreenings(ctx, tx, await lockDeposits(tx, deposits), requested)
    await followTaint(
      tx,
      flags.flatMap(({ change }) => change ?? []),
      'all',
    )
    for (const flagging of flags) await announce(ctx, tx, flagging)
  })
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

/** A deposit and its row, which is locked until the transaction ends. */
interface Locked {
  readonly deposit: DueDeposit
  readonly known: ScreenedDeposit
}

/** Locks the deposits in the order of their ids, as where blocks are booked. Deposits that are not there any more are left out. */
async function lockDeposits(tx: Tx, deposits: readonly DueDeposit[]): Promise<Locked[]> {
  const rows = new Map((await lockScreenedDeposits(tx, deposits)).map((row) => [row.id, row]))
  return deposits.flatMap((deposit) => {
    const known = rows.get(deposit.id)
    return known === undefined ? [] : [{ deposit, known }]
  })
}

/** Stores the screenings of these deposits; returns what became of the flags of those that have or had one. */
async function writeScreenings(
  ctx: Pick<WorkCtx, 'clock' | 'random' | 'screening'>,
  tx: Tx,
  locked: readonly Locked[],
  { batch, ticket }: SourceResults,
): Promise<Flagging[]> {
  const now = ctx.clock.now()
  const isCurrentList = await ctx.screening.isCurrentList(tx, batch.listVersion)
  const screened = locked.flatMap(({ deposit, known }) => {
    const found: Screened = batch.of(deposit.from, deposit.environment)
    const to = nextStatus(known, { result: found.result, ticket, isCurrentList })
    return to === 'again' ? [] : [{ deposit, known, found, to }]
  })
  await markDepositsScreened(
    tx,
    screened.map(({ deposit, known, found, to }) => {
      const sinceMs = now.getTime() - known.createdAt.getTime()
      const dueAt = to === 'clear' ? null : dueAfter(now, { id: deposit.id, ...found, sinceMs })
      return { deposit, amlStatus: to, isOnHold: isOnHold(found), dueAt }
    }),
  )
  await recordScreenings(
    ctx,
    tx,
    batch,
    screened.map(({ deposit, found }) => ({ tenant: deposit, subjectId: deposit.id, address: deposit.from, found })),
  )
  return screened.flatMap(({ found, ...one }) => flagging(one, evidenceOf(found, batch)))
}

type Rescreened = Locked & { readonly to: Flagging['to'] }

/** Returns the change of a deposit's flag; nothing if it had none and has none. */
function flagging({ deposit, known, to }: Rescreened, evidence: Flagging['evidence']): readonly Flagging[] {
  if (known.amlStatus !== 'flagged' && to !== 'flagged') return []
  const { organisationId, environment, walletId, network } = deposit
  const asset = { tenant: { organisationId, environment }, walletId, network, token: known.token }
  const change = known.amlStatus === to ? undefined : { asset, block: known.block }
  // A flag that booking set has no event yet: no screening of the row was stored.
  const from = known.amlTicket === 0n ? 'pending' : known.amlStatus
  return [{ deposit, change, from, to, evidence }]
}

/** Records the change of a flag in the audit log, and publishes its event. */
async function announce(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'publish'>,
  tx: Tx,
  { deposit, from, to, evidence }: Flagging,
): Promise<void> {
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
