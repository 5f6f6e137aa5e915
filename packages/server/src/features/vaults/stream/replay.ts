import type { Deps } from '../../../platform/ctx.ts'
import type { FairSemaphore } from '../../../platform/fair-semaphore.ts'
import type { EventStream } from './event-stream.ts'
import { expiryFrameOf, frameOf } from './frame.ts'
import type { Hub } from './hub.ts'
import { type EventRow, listExpiries, listPageAfter } from './store.ts'

/** Bounds of one page. A page waits for its stream's turn, so it is small. */
const eventsMax = 200
const bytesMax = 65_536

export interface ReplayDeps extends Pick<Deps, 'db' | 'fairDb' | 'clock' | 'log'> {
  readonly hub: Hub
  /** Slots for reads of pages, shared between the owners of the streams. */
  readonly reads: FairSemaphore
}

/**
 * Writes the events since the stream's position, a page at a time, no faster than the reader, nor than the caller's rate limit, up to those that existed when it
 * opened. Then the hub takes the stream over, or returns how much further it has sent meanwhile. Both happen in one synchronous
 * step, so that no event can fall between the last page and the first live event.
 */
export async function replay(deps: ReplayDeps, stream: EventStream, head: number): Promise<void> {
  try {
    let goal: number | undefined = head
    while (stream.line.isOpen && goal !== undefined) {
      if (stream.sent >= goal) goal = deps.hub.join(stream)
      else await writePage(deps, stream, goal)
    }
  } catch (error) {
    deps.log.warn({ err: error, vaultId: stream.vaultId }, 'events could not be replayed; the stream is closed')
    stream.line.cut()
  }
}

/** Writes one page and waits until the reader has received it; if the vault has none, it is gone, and the stream ends. */
async function writePage(deps: ReplayDeps, stream: EventStream, goal: number): Promise<void> {
  const { vaultId, line } = stream
  const rows = await readPage(deps, stream)
  if (rows.length === 0) return endGone(deps, stream)
  const frames = rows.map((row) => frameOf(vaultId, row))
  stream.endIfExpired(deps.clock.now())
  if (line.isOpen) stream.send(frames, Buffer.concat(frames.map(({ bytes }) => bytes)))
  await line.drained()
  await stream.payFor(frames, { isLast: stream.sent >= goal })
}

/** Ends a stream whose vault is gone; one that was closed before its turn is left alone. */
async function endGone({ db, fairDb, clock }: ReplayDeps, stream: EventStream): Promise<void> {
  if (!stream.line.isOpen) return
  const [expiry] = await listExpiries(fairDb(db, stream.owner), [stream], clock.now())
  stream.endGone(expiry && expiryFrameOf(stream.vaultId, expiry.expiredAt))
}

/**
 * Reads one page with a connection of the owner's share, in turn with the other streams: however many streams have a long past, the other
 * requests of their owner, and those of everybody else, find a connection. None for a stream that was closed before its turn.
 */
async function readPage(
  { db, fairDb, reads, clock }: ReplayDeps,
  { tenant, owner, vaultId, sent, line }: EventStream,
): Promise<readonly EventRow[]> {
  const release = await reads.take(owner)
  try {
    if (!line.isOpen) return []
    const bounds = { after: sent, eventsMax, bytesMax }
    return await listPageAfter(fairDb(db, owner), tenant, { vaultId, now: clock.now() }, bounds)
  } finally {
    release()
  }
}
