import { newId } from '../../../platform/ids.ts'
import type { Deps } from '../ports.ts'
import { hasEvents, insertDeliveries, lockQueues, takeEvents } from './queue-store.ts'

/** Most events of one transaction. */
const eventsMax = 500

/**
 * Writes the deliveries of a batch of events, oldest first, in the transaction that marks the events: whichever process dies,
 * each event has all of its deliveries once. Returns how many deliveries it wrote, and whether more events may wait.
 */
export async function fanOut(
  deps: Pick<Deps, 'db' | 'clock' | 'random'>,
): Promise<{ readonly written: number; readonly isMore: boolean }> {
  if (!(await hasEvents(deps.db))) return { written: 0, isMore: false }
  return deps.db.tx(async (tx) => {
    const taken = await takeEvents(tx, eventsMax)
    const news = taken.flatMap(({ eventId, webhookId }) => (webhookId === null ? [] : [{ eventId, webhookId }]))
    if (news.length > 0) {
      const webhookIds = news.map(({ webhookId }) => webhookId)
      await lockQueues(tx, [...new Set(webhookIds)])
      const eventIds = news.map(({ eventId }) => eventId)
      const ids = news.map(() => newId('del', deps))
      await insertDeliveries(tx, { ids, eventIds, webhookIds, now: deps.clock.now() })
    }
    return { written: news.length, isMore: new Set(taken.map(({ eventId }) => eventId)).size === eventsMax }
  })
}
