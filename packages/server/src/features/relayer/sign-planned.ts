import type { Background } from '../../platform/ctx.ts'
import type { Sql, Tx } from '../../platform/db/db.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import type { DueChecks, DueCursors } from '../plans/index.ts'
import type { AuthorizationPayload } from './port.ts'
import type { Deps } from './ports.ts'
import { relays } from './relays.ts'

/** Most transfers of a network that are signed at once. */
const signedAtOnceMax = 200

/** The bounds of a list of transfers that are not signed yet: the most that it lists, and where it starts. */
export type PlannedBounds = Pick<DueChecks, 'most' | 'cursors'>

/** Transfers that are stored before they are signed. */
export interface PlannedTransfers<D extends Deps, Planned extends { readonly isPast: boolean }> {
  /** Name of the recurring task, and its period. */
  readonly name: string
  readonly everyMs: number
  /** Name of the transfers in the relayer. */
  readonly purpose: string
  /** A condition: whether `take` would take any on these networks. */
  readonly isAnyPlanned: (networks: readonly string[]) => Sql
  /** Takes transfers of a network in shares of their owners, those that were tried longest ago first, in a transaction that reads in order. */
  readonly take: (tx: Tx, network: string, due: PlannedBounds) => Promise<readonly Planned[]>
  /** Returns the function that signs the transfers of one run. */
  readonly createSign: (ctx: D & Background) => (planned: Planned) => Promise<AuthorizationPayload>
  /** Statement that marks transfers as signed and returns rows for the relayer; signed ones stay as they are. */
  readonly signing: (signed: readonly (Planned & { readonly payload: AuthorizationPayload })[]) => Sql
  /** The ids of a transfer, for the log. */
  readonly idsOf: (planned: Planned) => Readonly<Record<string, string>>
  /** Ends a transfer that expired without a signature: nobody can have sent it. */
  readonly endUnsigned: (ctx: D & Background, planned: Planned) => Promise<void>
}

/**
 * Recurring task that signs planned transfers with their accounts' keys and adds them to the relayer's queue, in one statement. Idempotent:
 * of two signatures with one nonce the first is stored, and a token accepts a nonce once.
 */
export function signPlanned<D extends Deps, Planned extends { readonly isPast: boolean }>(
  transfers: PlannedTransfers<D, Planned>,
): RecurringTask<D> {
  const cursors: DueCursors = new Map()
  return {
    name: transfers.name,
    everyMs: transfers.everyMs,
    isDue: (deps) => transfers.isAnyPlanned(networksOf(deps)),
    run: (ctx) => repeatWhile(ctx, async () => (await signSome(ctx, transfers, cursors)) >= signedAtOnceMax),
  }
}

function networksOf({ chains }: Pick<Deps, 'chains'>): readonly string[] {
  return chains.configured.filter(({ settlesEip3009 }) => settlesEip3009).map(({ name }) => name)
}

/** Returns how many were signed. Transfers that fail are retried after those that were tried longer ago. */
async function signSome<D extends Deps, Planned extends { readonly isPast: boolean }>(
  ctx: D & Background,
  { take, createSign, purpose, signing, idsOf, endUnsigned }: PlannedTransfers<D, Planned>,
  cursors: DueCursors,
): Promise<number> {
  const planned: Planned[] = []
  for (const network of networksOf(ctx)) {
    const due = { most: signedAtOnceMax, cursors }
    planned.push(...(await ctx.db.tx((tx) => take(tx, network, due), { readsInOrder: true })))
  }
  if (planned.length === 0) return 0
  const sign = createSign(ctx)
  const signOne = async (transfer: Planned) => {
    try {
      return { ...transfer, payload: await sign(transfer) }
    } catch (error) {
      ctx.log.error({ err: error, ...idsOf(transfer) }, 'a transfer could not be signed; retrying')
      if (transfer.isPast) await endUnsigned(ctx, transfer)
      return undefined
    }
  }
  const signed = (await Promise.all(planned.map(signOne))).filter((one) => one !== undefined)
  const failures = await relays.enqueueEach(ctx.db, purpose, signed, signing)
  for (const [index, one] of signed.entries())
    if (failures[index] !== undefined)
      ctx.log.error({ err: failures[index], ...idsOf(one) }, 'a transfer was not added to the queue')
  return signed.length
}
