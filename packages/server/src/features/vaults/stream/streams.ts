import type { Deps, Environment } from '../../../platform/ctx.ts'
import type { EventStreamResponse } from '../../../platform/event-streams/response.ts'
import { OpenStreams } from '../../../platform/event-streams/streams.ts'
import { createFairSemaphore } from '../../../platform/fair-semaphore.ts'
import { memoryBudgets } from '../../../platform/memory-budgets.ts'
import type { EndedReaders } from '../../../platform/reader.ts'
import type { VaultId } from '../schema.ts'
import { EventStream, type StreamOpening } from './event-stream.ts'
import { Hub } from './hub.ts'
import { type ReplayDeps, replay } from './replay.ts'

const streamsMax = 20_000
const lagBytesMax = memoryBudgets.vaultStreams
/** Most pages of past events that are read at once, shared between the owners of the streams. */
const readsMax = 8

export interface StreamsDeps extends Pick<Deps, 'db' | 'fairDb' | 'clock' | 'log' | 'metrics'> {
  readonly endedReaders: EndedReaders
}

/** Every event stream of vaults of this process. */
export class VaultStreams {
  readonly #deps: StreamsDeps
  readonly #hub: Hub
  readonly #replayDeps: ReplayDeps
  readonly #open: OpenStreams<EventStream>

  constructor(deps: StreamsDeps) {
    this.#deps = deps
    this.#hub = new Hub(deps)
    this.#replayDeps = { ...deps, hub: this.#hub, reads: createFairSemaphore(readsMax) }
    const { log, metrics, endedReaders } = deps
    this.#open = new OpenStreams({
      ...{ log, metrics, endedReaders, streamsMax, lagBytesMax },
      gauges: {
        open: ['purser_vault_streams', 'Open event streams.'],
        most: ['purser_vault_streams_max', 'Most event streams that the process opens.'],
        largestShare: ['purser_vault_streams_largest_share', 'Open event streams of the account that has the most.'],
      },
      failure: 'the keys of open streams could not be checked; they are checked again soon',
      onTick: () => this.#endExpired(),
    })
  }

  /** The number of open streams. */
  get count(): number {
    return this.#open.count
  }

  /** Refuses if this process, one share owner, or its test environment, has the most streams that it may. */
  refuseIfFull(owner: string, environment: Environment): void {
    this.#open.refuseIfFull(owner, environment)
  }

  /** Returns a response that sends `greeting`, then past events up to the event `head`, and then new events. */
  respond(opening: StreamOpening, head: number, greeting: Uint8Array): EventStreamResponse {
    return this.#open.respond({
      create: (line) => new EventStream(opening, line),
      opened: (stream) => {
        stream.line.write(greeting)
        void replay(this.#replayDeps, stream, head)
      },
      closed: (stream) => this.#hub.leave(stream),
    })
  }

  /** Notifies the hub that a vault has new events. Never throws. */
  wake(vaultId: VaultId): void {
    this.#hub.wake(vaultId)
  }

  /** Closes all streams; the server has ended the responses. */
  async stop(): Promise<void> {
    await Promise.all([this.#open.stop(), this.#hub.stop()])
  }

  /** Runs one tick of the timer. Never fails. */
  tick(): Promise<void> {
    return this.#open.tick()
  }

  #endExpired(): void {
    const now = this.#deps.clock.now()
    for (const stream of this.#open) if (stream.endIfOverdue(now)) this.#hub.wake(stream.vaultId)
  }
}
