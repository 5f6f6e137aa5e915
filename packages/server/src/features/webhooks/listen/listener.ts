import type { Tenant } from '../../../platform/ctx.ts'
import type { SseConnection } from '../../../platform/event-stream-response.ts'
import type { Reader } from '../../../platform/reader.ts'
import { heartbeat } from './frame.ts'
import type { Following, Place } from './store.ts'

export interface Listening extends Following {
  readonly tenant: Tenant
  readonly reader: Reader
  readonly secret: string
  /** Whether the stream continues with future events. */
  readonly follows: boolean
}

/** Most buffered bytes of a reader before more is sent: signatures must not age in a buffer. */
const waitingBytesMax = 65_536
/** Consecutive heartbeats without progress after which a reader counts as gone. */
const stallsMax = 2

/** One open stream: its filter, its position, and the connection to its reader. */
export class Listener implements Following {
  readonly tenant: Tenant
  readonly types: readonly string[] | undefined
  readonly reader: Reader
  readonly secret: string
  readonly follows: boolean
  readonly line: SseConnection
  place: Place
  #stalls = 0
  #waitingBefore = 0

  constructor(listening: Listening, line: SseConnection) {
    this.tenant = listening.tenant
    this.types = listening.types
    this.reader = listening.reader
    this.secret = listening.secret
    this.follows = listening.follows
    this.place = listening.place
    this.line = line
  }

  /** Whether its reader accepts more. */
  get isReady(): boolean {
    return this.line.isOpen && this.line.waiting < waitingBytesMax
  }

  /** Sends a heartbeat; closes a stream whose reader has stopped reading. */
  beat(): void {
    const { waiting } = this.line
    this.#stalls = waiting > 0 && waiting >= this.#waitingBefore ? this.#stalls + 1 : 0
    this.#waitingBefore = waiting
    if (this.#stalls > stallsMax) this.line.cut()
    else this.line.write(heartbeat)
  }
}
