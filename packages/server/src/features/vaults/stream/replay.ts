import type { Deps } from '../../../platform/ctx.ts'
import type { EventStream } from './event-stream.ts'
import { type Frame, frameOf } from './frame.ts'
import type { Hub } from './hub.ts'
import { listPageAfter } from './store.ts'

const eventsMax = 200
const bytesMax = 65_536

type ReplayDeps = Pick<Deps, 'db' | 'clock' | 'log'>

/**
 * Writes the events since the stream's position, a page at a time and no faster than the reader, up to those that existed when it
 * opened. Then the hub takes the stream over, or returns how much further it has sent meanwhile. Both happen in one synchronous
 * step, so that no event can fall between the last page and the first live event.
 */
export async function replay(deps: ReplayDeps, hub: Hub, stream: EventStream, head: number): Promise<void> {
  try {
    let goal: number | undefined = head
    while (stream.line.isOpen && goal !== undefined) {
      if (stream.sent >= goal) goal = hub.join(stream)
      else await writePage(deps, stream)
    }
  } catch (error) {
    deps.log.warn({ err: error, vaultId: stream.vaultId }, 'events could not be replayed; the stream is closed')
    stream.line.cut()
  }
}

/** Writes one page and waits until the reader has received it; if the vault has none, it is gone, and the stream ends. */
async function writePage({ db, clock }: ReplayDeps, stream: EventStream): Promise<void> {
  const { tenant, vaultId, sent, line } = stream
  const bounds = { after: sent, eventsMax, bytesMax }
  const rows = await listPageAfter(db, tenant, { vaultId, now: clock.now() }, bounds)
  if (rows.length === 0) return line.end()
  const frames = rows.map((row) => frameOf(vaultId, row))
  stream.endIfExpired(clock.now())
  if (line.isOpen) stream.send(frames, whole(frames))
  await line.drained()
}

function whole(frames: readonly Frame[]): Buffer {
  return Buffer.concat(frames.map(({ bytes }) => bytes))
}
