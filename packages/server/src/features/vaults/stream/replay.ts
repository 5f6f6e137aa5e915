import type { Deps } from '../../../platform/ctx.ts'
import type { EventStream } from './event-stream.ts'
import { type Frame, frameOf } from './frame.ts'
import type { Hub } from './hub.ts'
import { listPageAfter } from './store.ts'

const eventsMax = 200
const bytesMax = 65_536

type ReplayDeps = Pick<Deps, 'db' | 'clock' | 'log'>

/**
 * Writes what happened since the stream's event, a page at a time and no faster than its reader takes it, up to what was there
 * when it opened; then the hub takes it over, or says how much further it has told meanwhile. Both are asked and answered in
 * one step without a pause, so that nothing can happen between the last page and the first live event.
 */
export async function replay(deps: ReplayDeps, hub: Hub, stream: EventStream, head: number): Promise<void> {
  try {
    let goal: number | undefined = head
    while (stream.line.isOpen && goal !== undefined) {
      if (stream.sent >= goal) goal = hub.join(stream)
      else await writePage(deps, stream)
    }
  } catch (error) {
    deps.log.warn({ err: error, vaultId: stream.vaultId }, 'events could not be replayed; the stream is cut')
    stream.line.cut()
  }
}

/** Writes one page and waits until its reader has taken it; a vault that has none is gone, and the stream ends. */
async function writePage({ db, clock }: ReplayDeps, stream: EventStream): Promise<void> {
  const { tenant, vaultId, sent, line } = stream
  const bounds = { after: sent, eventsMax, bytesMax }
  const rows = await listPageAfter(db, tenant, { vaultId, now: clock.now() }, bounds)
  if (rows.length === 0) return line.end()
  const frames = rows.map((row) => frameOf(vaultId, row))
  stream.endIfLapsed(clock.now())
  if (line.isOpen) stream.tell(frames, whole(frames))
  await line.drained()
}

function whole(frames: readonly Frame[]): Buffer {
  return Buffer.concat(frames.map(({ bytes }) => bytes))
}
