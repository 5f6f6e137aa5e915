import type { EventStreamResponse, SseConnection } from '../src/platform/event-streams/response.ts'

/** A connection whose reader receives as much as the test says. */
export class ManualLine implements SseConnection {
  readonly written: string[] = []
  isOpen = true
  how: 'end' | 'cut' | undefined
  waiting = 0
  readonly #closed: () => void

  constructor(closed: () => void = () => undefined) {
    this.#closed = closed
  }

  write(bytes: Uint8Array): void {
    if (this.isOpen) this.written.push(Buffer.from(bytes).toString())
  }

  drained(): Promise<void> {
    return Promise.resolve()
  }

  end(): void {
    this.#close('end')
  }

  cut(): void {
    this.#close('cut')
  }

  /** The ids of the signed deliveries that were written. */
  get webhookIds(): readonly string[] {
    return this.written.join('').match(/(?<="webhook-id":")[^"]+/g) ?? []
  }

  #close(how: 'end' | 'cut'): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.how = how
    this.#closed()
  }
}

/** Opens a response as the server does when its headers are sent. */
export function openManually(response: EventStreamResponse): ManualLine {
  const line = new ManualLine(response.closed)
  response.open(line)
  return line
}
