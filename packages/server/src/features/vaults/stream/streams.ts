import type { Deps } from '../../../platform/ctx.ts'
import { failPlatform } from '../../../platform/errors.ts'
import type { ApiKeyId, OrganisationId } from '../../../platform/ids.ts'
import { type Line, Live } from '../../../platform/live.ts'
import type { Metrics } from '../../../platform/metrics.ts'
import type { VaultId } from '../vault.ts'
import { EventStream, type StreamOpening } from './event-stream.ts'
import { Hub } from './hub.ts'
import { replay } from './replay.ts'

/** Streams that one process holds open, and those of one organisation among them. */
const streamsMax = 20_000
const streamsOfOrganisationMax = 12_000
const retryAfterSeconds = 5

/** How often rights are looked at. Each stream has its heartbeat in one of fifteen such beats, so that they never come all at once. */
const beatMs = 1_000
const beatsPerHeartbeat = 15

export interface StreamsDeps extends Pick<Deps, 'db' | 'clock' | 'log' | 'metrics'> {
  /** Which of these keys take no calls any more. */
  readonly revokedKeys: (apiKeyIds: readonly ApiKeyId[]) => Promise<readonly ApiKeyId[]>
}

/**
 * Every event stream of this process, from its first byte to its last. One timer serves all of them; it runs while there are
 * any.
 */
export class VaultStreams {
  readonly #deps: StreamsDeps
  readonly #hub: Hub
  readonly #gauge: ReturnType<Metrics['gauge']>
  readonly #open = new Map<EventStream, number>()
  readonly #ofOrganisation = new Map<OrganisationId, number>()
  #opened = 0
  #beats = 0
  #timer: NodeJS.Timeout | undefined
  #checking: Promise<void> | undefined

  constructor(deps: StreamsDeps) {
    this.#deps = deps
    this.#hub = new Hub(deps)
    this.#gauge = deps.metrics.gauge('purser_vault_streams', 'Open event streams.')
  }

  /** How many are open. */
  get count(): number {
    return this.#open.size
  }

  /** Refuses where this process, or one organisation in it, has as many streams as it may. */
  refuseIfFull(organisationId: OrganisationId): void {
    if (this.#open.size >= streamsMax) throw failPlatform('service-unavailable', { retryAfterSeconds })
    if ((this.#ofOrganisation.get(organisationId) ?? 0) >= streamsOfOrganisationMax)
      throw failPlatform('rate-limit-exceeded', { retryAfterSeconds })
  }

  /** An answer that says `greeting`, then what happened up to the event `head`, and then goes on live. */
  answer(opening: StreamOpening, head: number, greeting: Uint8Array): Live {
    let stream: EventStream | undefined
    const open = (line: Line): void => {
      stream = new EventStream(opening, line)
      this.#add(stream)
      line.write(greeting)
      void replay(this.#deps, this.#hub, stream, head)
    }
    return new Live(open, () => {
      if (stream !== undefined) this.#remove(stream)
    })
  }

  /** Tells that a vault has news. Never throws. */
  wake(vaultId: VaultId): void {
    this.#hub.wake(vaultId)
  }

  /** Lets go of all; the server has ended the answers themselves. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const stream of this.#open.keys()) stream.line.end()
    await Promise.all([this.#hub.stop(), this.#checking])
  }

  /** One beat of the timer: heartbeats of those whose turn it is, and the end of those that may not be open any more. Never fails. */
  beat(): Promise<void> {
    const now = this.#deps.clock.now()
    this.#beats = (this.#beats + 1) % beatsPerHeartbeat
    for (const [stream, turn] of this.#open) {
      if (turn === this.#beats) stream.beat()
      stream.endIfLapsed(now)
    }
    this.#checking ??= this.#endRevoked().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  #add(stream: EventStream): void {
    const { organisationId } = stream.tenant
    this.#open.set(stream, this.#opened++ % beatsPerHeartbeat)
    this.#ofOrganisation.set(organisationId, (this.#ofOrganisation.get(organisationId) ?? 0) + 1)
    this.#timer ??= setInterval(() => void this.beat(), beatMs).unref()
    this.#gauge.set(this.#open.size)
  }

  #remove(stream: EventStream): void {
    if (!this.#open.delete(stream)) return
    this.#hub.leave(stream)
    const { organisationId } = stream.tenant
    const left = (this.#ofOrganisation.get(organisationId) ?? 1) - 1
    if (left === 0) this.#ofOrganisation.delete(organisationId)
    else this.#ofOrganisation.set(organisationId, left)
    if (this.#open.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    this.#gauge.set(this.#open.size)
  }

  /** Ends the streams whose key was revoked meanwhile, wherever it was. */
  async #endRevoked(): Promise<void> {
    const keys = new Set<ApiKeyId>()
    for (const { right } of this.#open.keys()) if (right.kind === 'api-key') keys.add(right.id)
    if (keys.size === 0) return
    try {
      const revoked = new Set(await this.#deps.revokedKeys([...keys]))
      for (const { right, line } of this.#open.keys()) if (right.kind === 'api-key' && revoked.has(right.id)) line.end()
    } catch (error) {
      this.#deps.log.warn(
        { err: error },
        'the keys of open streams could not be looked at; they are looked at again soon',
      )
    }
  }
}
