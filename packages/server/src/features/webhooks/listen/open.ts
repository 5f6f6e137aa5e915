import { instantOf } from '../../../platform/clock.ts'
import { shareOwnerOf } from '../../../platform/ctx.ts'
import { eventStreamHeaders } from '../../../platform/event-streams/response.ts'
import { Reply } from '../../../platform/operation.ts'
import { requireReader } from '../../../platform/reader.ts'
import { oldestKept } from '../history.ts'
import type { Ctx } from '../ports.ts'
import { fail } from './errors.ts'
import type { ListenQuery } from './schema.ts'
import { listenerSecret } from './secret.ts'
import { beginning, findPosition, findStart, listPages, type StreamPosition } from './store.ts'

/**
 * Opens a stream of the organisation's events, each as a delivery that is signed for the listeners of the calling key: past
 * events strictly after the client's last one or after an instant, or none; then new events.
 */
export async function listen(
  ctx: Ctx,
  { query, lastEventId }: { readonly query: ListenQuery; readonly lastEventId: string | undefined },
): Promise<Reply> {
  const { tenant, listeners, db, replayCharges: charges } = ctx
  const owner = shareOwnerOf(ctx)
  const reader = requireReader(ctx)
  const position = await placeOf(ctx, query, lastEventId)
  const following = { tenant, position, types: query.events }
  const follows = query.follow !== 'false'
  if (!follows) {
    const [page] = await listPages(db, [following], { entriesMax: 1, bytesMax: 1 })
    if (page?.entries.length === 0 && !page.isFull) return new Reply(204, undefined)
  }
  const { secret } = await listenerSecret(ctx)
  listeners.refuseIfFull({ owner, environment: ctx.tenant.environment, reader })
  const response = listeners.respond({ ...following, owner, reader, secret, follows, charges })
  return new Reply(200, response, eventStreamHeaders)
}

async function placeOf(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  { from }: ListenQuery,
  lastEventId: string | undefined,
): Promise<StreamPosition> {
  if (lastEventId === undefined || lastEventId === '') {
    // No event is later than now, so a start in the future is the present position, without a search.
    const isNow = from === undefined || from > ctx.clock.now()
    const since = isNow ? 'now' : instantOf(Math.max(from.getTime(), oldestKept(ctx).getTime()))
    return (await findStart(ctx.db, ctx.tenant, since)) ?? beginning
  }
  if (lastEventId === beginning.id) return beginning
  const position = isEntryId(lastEventId) ? await findPosition(ctx.db, ctx.tenant, lastEventId) : undefined
  if (position === undefined) throw fail('event-not-found')
  return position
}

/** Whether the text is the id of an event or of a resent event. Other texts do not reach the database. */
function isEntryId(text: string): boolean {
  return /^(?:evt|del)_[0-9a-z]{26}$/.test(text)
}
