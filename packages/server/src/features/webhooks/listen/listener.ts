import type { Tenant } from '../../../platform/ctx.ts'
import type { ApiKeyId } from '../../../platform/ids.ts'
import type { Line } from '../../../platform/live.ts'
import { heartbeat } from './frame.ts'
import type { Following, Place } from './store.ts'

export interface Listening extends Following {
  readonly tenant: Tenant
  readonly apiKeyId: ApiKeyId
  readonly secret: string
  /** Whether it goes on with what is still to happen. */
  readonly follows: boolean
}

/** Most bytes that wait for a reader before it is told more: signatures must not grow old on the way. */
const waitingBytesMax = 65_536
/** Heartbeats in a row at which a reader has taken nothing of what waits; then it is taken for gone. */
const stallsMax = 2

/** One open stream: what it is told, how far it is, and the line to its reader. */
export class Listener implements Following {
  readonly tenant: Tenant
  readonly types: readonly string[] | undefined
  readonly apiKeyId: ApiKeyId
  readonly secret: string
  readonly follows: boolean
  readonly line: Line
  place: Place
  #stalls = 0
  #waitingBefore = 0

  constructor(listening: Listening, line: Line) {
    this.tenant = listening.tenant
    this.types = listening.types
    this.apiKeyId = listening.apiKeyId
    this.secret = listening.secret
    this.follows = listening.follows
    this.place = listening.place
    this.line = line
  }

  /** Whether its reader takes more. */
  get isReady(): boolean {
    return this.line.isOpen && this.line.waiting < waitingBytesMax
  }

  /** Says that the stream is still there; cuts it where its reader has stopped to read. */
  beat(): void {
    const { waiting } = this.line
    this.#stalls = waiting > 0 && waiting >= this.#waitingBefore ? this.#stalls + 1 : 0
    this.#waitingBefore = waiting
    if (this.#stalls > stallsMax) this.line.cut()
    else this.line.write(heartbeat)
  }
}
