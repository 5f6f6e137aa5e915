import type { Screened, ScreeningBatch } from '../../../partners/screening/port.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { newId } from '../../../platform/ids.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import type { Ctx } from '../ports.ts'
import { publishFlag } from './flag-events.ts'
import { dueAfter, nextStatus, retryAfter } from './next.ts'
import {
  type DueWallet,
  drawTicket,
  insertScreenings,
  listLastScreenings,
  lockScreenedWallet,
  markWalletScreened,
  postponeWallet,
} from './store.ts'

export type WorkCtx = Omit<Ctx, 'tenant'>

/** One query of the sources, and its order among queries. */
export interface SourceResults {
  readonly batch: ScreeningBatch
  readonly ticket: bigint
}

/** Queries the sources for these addresses. Outside any database transaction, since nodes are slow. */
export async function querySources(
  ctx: Pick<WorkCtx, 'db' | 'screening'>,
  addresses: readonly `0x${string}`[],
): Promise<SourceResults> {
  const ticket = await drawTicket(ctx.db)
  return { ticket, batch: await ctx.screening.screen(addresses) }
}

/**
 * Screens wallets and stores the results, each wallet in a separate transaction. Running it again screens again; stored results are ordered
 * by when each query began. A wallet whose result cannot be stored is due again later, so that none waits behind it.
 */
export async function screenWallets(ctx: WorkCtx, wallets: readonly DueWallet[]): Promise<void> {
  if (wallets.length === 0) return
  const requested = await querySources(
    ctx,
    wallets.map(({ address }) => address),
  )
  for (const wallet of wallets)
    await writeWallet(ctx, wallet, requested).catch((error: unknown) => {
      ctx.log.error({ err: error, walletId: wallet.id }, 'the screening of a wallet could not be stored; retrying')
      return postponeWallet(ctx.db, wallet, retryAfter(ctx.clock.now())).catch((postponing: unknown) =>
        ctx.log.error({ err: postponing, walletId: wallet.id }, 'the screening of a wallet could not be postponed'),
      )
    })
}

async function writeWallet(work: WorkCtx, wallet: DueWallet, { batch, ticket }: SourceResults): Promise<void> {
  const ctx = forTenant(work, wallet)
  const found = batch.of(wallet.address, wallet.environment)
  await ctx.db.tx(async (tx) => {
    const known = await lockScreenedWallet(tx, wallet, wallet.id)
    if (known === undefined) return
    const now = ctx.clock.now()
    const isCurrentList = await ctx.screening.isCurrentList(tx, batch.listVersion)
    const amlStatus = nextStatus(known, { result: found.result, ticket, isCurrentList })
    // Unchanged, and still due: the list changed meanwhile, or a later screening was stored first.
    if (amlStatus === 'again') return
    const decidedAt = found.result === 'pending' ? null : now
    const sinceMs = now.getTime() - (known.lastReportedAt ?? known.createdAt).getTime()
    const dueAt = dueAfter(now, { id: wallet.id, result: found.result, sinceMs })
    await markWalletScreened(tx, wallet, wallet.id, { amlStatus, reportedAt: decidedAt, dueAt })
    await recordScreenings(ctx, tx, batch, [{ tenant: wallet, subjectId: wallet.id, address: wallet.address, found }])
    if (amlStatus === known.amlStatus) return
    const details = { address: wallet.address, from: known.amlStatus, to: amlStatus, ...evidenceOf(found, batch) }
    await ctx.audit(tx, { action: 'wallets.byo.screen', target: wallet.id, details })
    const isFlagged = amlStatus === 'flagged'
    if (!isFlagged && known.amlStatus !== 'flagged') return
    const subject = { walletId: wallet.id, address: wallet.address, transactionId: null }
    await publishFlag(ctx, tx, { ...subject, isFlagged, reason: found.reason })
  })
}

/** The evidence of an audit entry. */
export function evidenceOf(found: Screened, batch: ScreeningBatch) {
  return {
    reason: found.reason,
    listVersion: batch.listVersion.toString(),
    listAsOf: batch.listAsOf.toISOString(),
    oracle: found.oracle,
    oracleNetworks: [...batch.oracleNetworks],
  }
}

const repeatMs = 20 * 3_600_000

/** The result of a screening of a wallet or of a deposit. */
export interface SubjectScreening {
  readonly tenant: Tenant
  readonly subjectId: string
  readonly address: string
  readonly found: Screened
}

/** Adds screenings to the history. While one stays pending for the same reason, once a day is enough. */
export async function recordScreenings(
  ctx: Pick<WorkCtx, 'clock' | 'random'>,
  tx: Tx,
  batch: ScreeningBatch,
  screenings: readonly SubjectScreening[],
): Promise<void> {
  const now = ctx.clock.now()
  const pending = screenings.filter(({ found }) => found.result === 'pending')
  const last = new Map((await listLastScreenings(tx, pending)).map((one) => [one.subjectId, one]))
  const isRepeated = ({ subjectId, found }: SubjectScreening): boolean => {
    const known = last.get(subjectId)
    if (found.result !== 'pending' || known?.result !== 'pending' || known.reason !== found.reason) return false
    return now.getTime() - known.screenedAt.getTime() < repeatMs
  }
  await insertScreenings(
    tx,
    screenings
      .filter((one) => !isRepeated(one))
      .map(({ tenant, subjectId, address, found }) => ({
        id: newId('scr', ctx),
        tenant,
        subjectId,
        address: address.toLowerCase(),
        ...found,
        listVersion: batch.listVersion,
        listAsOf: batch.listAsOf,
        oracleNetworks: batch.oracleNetworks,
        screenedAt: now,
      })),
  )
}
