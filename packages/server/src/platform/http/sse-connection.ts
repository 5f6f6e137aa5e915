import type { ServerResponse } from 'node:http'
import type { SseConnection } from '../event-streams/response.ts'

/** Milliseconds that a caller has to read the end of a response. */
const endingMsMax = 30_000

/** An open response over HTTP, whose headers are sent. */
export class HttpSseConnection implements SseConnection {
  readonly #response: ServerResponse
  readonly #closed: (connection: HttpSseConnection) => void
  #isOpen = true
  #drained: PromiseWithResolvers<void> | undefined

  /** `closed` is called once, when nothing can be written any more, and never before the constructor has returned. */
  constructor(response: ServerResponse, closed: (connection: HttpSseConnection) => void) {
    this.#response = response
    this.#closed = closed
    // A failed response is closed too; without a listener the failure would end the process.
    response.on('error', ignore)
    response.once('close', () => this.#close())
  }

  get waiting(): number {
    return this.#isOpen ? this.#response.writableLength : 0
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  write(bytes: Uint8Array): void {
    if (this.#isOpen) this.#response.write(bytes)
  }

  drained(): Promise<void> {
    if (!this.#isOpen || !this.#response.writableNeedDrain) return Promise.resolve()
    if (this.#drained === undefined) {
      this.#drained = Promise.withResolvers()
      this.#response.once('drain', () => this.#release())
    }
    return this.#drained.promise
  }

  end(): void {
    if (!this.#isOpen) return
    this.#response.setTimeout(endingMsMax, () => this.#response.destroy())
    this.#response.end()
    this.#close()
  }

  cut(): void {
    if (!this.#isOpen) return
    this.#response.destroy()
    this.#close()
  }

  #release(): void {
    this.#drained?.resolve()
    this.#drained = undefined
  }

  #close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#release()
    this.#closed(this)
  }
}

function ignore(): void {}

/** The open responses of one server, so that it can end them when it stops: they would never end by themselves. */
export class OpenSseConnections {
  readonly #connections = new Set<HttpSseConnection>()
  #stopping = false

  open(response: ServerResponse, closed: () => void): HttpSseConnection {
    const connection = new HttpSseConnection(response, (own) => {
      this.#connections.delete(own)
      closed()
    })
    this.#connections.add(connection)
    return connection
  }

  /** Whether the server is stopping: a response that opens now must be ended immediately. */
  get isStopping(): boolean {
    return this.#stopping
  }

  /** Ends all of them, and cuts those whose caller reads too slowly. */
  stop(): void {
    this.#stopping = true
    for (const connection of this.#connections) connection.waiting > 0 ? connection.cut() : connection.end()
  }
}
