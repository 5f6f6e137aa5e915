import type { ServerResponse } from 'node:http'
import type { Line } from '../live.ts'

/** How long a caller has to take the end of an answer. */
const endingMsMax = 30_000

/** A line over an HTTP response whose headers are sent. */
export class HttpLine implements Line {
  readonly #response: ServerResponse
  readonly #closed: (line: HttpLine) => void
  #isOpen = true
  #drained: PromiseWithResolvers<void> | undefined

  /** `closed` is called once, when nothing can be written any more, and never before the constructor has returned. */
  constructor(response: ServerResponse, closed: (line: HttpLine) => void) {
    this.#response = response
    this.#closed = closed
    // A response that fails is closed too; without a listener the failure would end the process.
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

/** The lines that one server has open, so that it can end them when it stops: they would never end by themselves. */
export class OpenLines {
  readonly #lines = new Set<HttpLine>()
  #stopping = false

  open(response: ServerResponse, closed: () => void): HttpLine {
    const line = new HttpLine(response, (own) => {
      this.#lines.delete(own)
      closed()
    })
    this.#lines.add(line)
    return line
  }

  /** Whether the server stops: a line that opens now must be ended at once. */
  get isStopping(): boolean {
    return this.#stopping
  }

  /** Ends them all, and cuts those whose caller reads too slowly to take the end. */
  stop(): void {
    this.#stopping = true
    for (const line of this.#lines) line.waiting > 0 ? line.cut() : line.end()
  }
}
