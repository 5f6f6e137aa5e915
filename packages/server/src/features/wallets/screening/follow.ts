import { instantOf } from '../../../platform/clock.ts'
import type { Background } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { repeatWhile } from '../../../platform/recurring-task.ts'
import {
  type Follow,
  type FollowPlace,
  type FollowStep,
  firstPlace,
  followStages,
  lockFollow,
  markAddressesDue,
  markPendingDepositsDue,
  markPendingWalletsDue,
  markSendersDue,
  readFollow,
  upsertFollow,
  type Visited,
} from './follow-store.ts'
import type { WorkCtx } from './screen.ts'

/** Older money may be long spent, and freezing its amount would lock other money. */
const freezesBackMs = 30 * 86_400_000
/** Most rows of one transaction. */
const rowsMax = 1_000
/** Most addresses of one transaction. */
const addressesMax = 200
/** Sorts behind every id. */
const afterAllIds = '~'

/** A comparison in progress. */
interface Following extends Follow {
  readonly nextVersion: bigint
  readonly nextAsOf: Date
  readonly nextStage: NonNullable<Follow['nextStage']>
}

type FollowCtx = Pick<WorkCtx & Background, 'clock' | 'db' | 'screening' | 'stopping'>

/**
 * Compares the current list with the one that wallets were last compared with, and makes the addresses that differ due; if the list was
 * renewed, all pending addresses too. Each step marks at most 1,000 rows, in a transaction that also stores where the next one begins, so a process
 * that dies loses none. A list that comes during the steps is followed by the next run, from the one that these follow.
 */
export async function followList(ctx: FollowCtx): Promise<void> {
  const following = await beginFollow(ctx)
  if (following === undefined) return
  const { listVersion, nextVersion } = following
  const changed = listVersion === nextVersion ? [] : await ctx.screening.difference(listVersion, nextVersion)
  const addresses = [...new Set(changed)].sort()
  await repeatWhile(ctx, () => ctx.db.tx((tx) => followStep(ctx, tx, { following, addresses })))
}

/** The comparison in progress, or a new one with the current list; undefined if that one was followed. */
async function beginFollow({ db, screening }: FollowCtx): Promise<Following | undefined> {
  const list = await screening.list()
  const isFollowed = (known: Follow | undefined): boolean =>
    known?.nextVersion === null &&
    known.listVersion === list.version &&
    known.listAsOf.getTime() === list.asOf.getTime()
  if (isFollowed(await readFollow(db))) return undefined
  return db.tx(async (tx) => {
    await lockFollow(tx)
    const known = await readFollow(tx)
    if (known !== undefined && isFollowing(known)) return known
    if (isFollowed(known)) return undefined
    // No list came before the first one, so no address differs.
    const { listVersion, listAsOf } = known ?? { listVersion: list.version, listAsOf: instantOf(0) }
    const next = { nextVersion: list.version, nextAsOf: list.asOf, nextStage: followStages[0] }
    const following = { listVersion, listAsOf, ...next, ...firstPlace }
    await upsertFollow(tx, following)
    return following
  })
}

const isFollowing = (known: Follow): known is Following =>
  known.nextVersion !== null && known.nextAsOf !== null && known.nextStage !== null

/** Returns whether the comparison has further steps. */
async function followStep(
  { clock }: FollowCtx,
  tx: Tx,
  { following, addresses }: { readonly following: Following; readonly addresses: readonly string[] },
): Promise<boolean> {
  await lockFollow(tx)
  const known = await readFollow(tx)
  // Another process ended this comparison.
  if (known === undefined || !isFollowing(known)) return false
  if (known.listVersion !== following.listVersion || known.nextVersion !== following.nextVersion) return false
  const after = await markStage(tx, known, { now: clock.now(), addresses })
  if (after !== undefined) {
    await upsertFollow(tx, { ...known, ...after })
    return true
  }
  const nextStage = followStages[followStages.indexOf(known.nextStage) + 1]
  if (nextStage !== undefined) {
    await upsertFollow(tx, { ...known, ...firstPlace, nextStage })
    return true
  }
  const none = { nextVersion: null, nextAsOf: null, nextStage: null, ...firstPlace }
  await upsertFollow(tx, { listVersion: known.nextVersion, listAsOf: known.nextAsOf, ...none })
  return false
}

/** Marks the rows of one step due; returns the last place that it visited, or undefined at the end of the stage. */
async function markStage(
  tx: Tx,
  { nextStage, afterValue, afterId }: Following,
  { now, addresses }: { readonly now: Date; readonly addresses: readonly string[] },
): Promise<FollowPlace | undefined> {
  const step: FollowStep = { after: { afterValue, afterId }, now, most: rowsMax }
  if (nextStage === 'pending-deposits') return placeIfFull(await markPendingDepositsDue(tx, step))
  if (nextStage === 'pending-wallets') return placeIfFull(await markPendingWalletsDue(tx, step))
  const waiting = addresses.filter(
    (address) => address > afterValue || (address === afterValue && afterId !== afterAllIds),
  )
  const part = waiting.slice(0, addressesMax)
  const last = part.at(-1)
  if (last === undefined) return undefined
  const since = instantOf(now.getTime() - freezesBackMs)
  const visited =
    nextStage === 'senders'
      ? await markSendersDue(tx, { senders: part, since, ...step })
      : await markAddressesDue(tx, { addresses: part, ...step })
  return placeIfFull(visited) ?? (part.length < waiting.length ? { afterValue: last, afterId: afterAllIds } : undefined)
}

/** Undefined if no rows are left behind the visited ones. */
function placeIfFull(visited: Visited): FollowPlace | undefined {
  if (visited === undefined || visited.count < rowsMax) return undefined
  return { afterValue: visited.afterValue, afterId: visited.afterId }
}
