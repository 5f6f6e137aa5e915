import { type ClientRequest, type IncomingMessage, request as send } from 'node:http'
import { z } from 'zod'

const StreamEvent = z.strictObject({
  eventId: z.string(),
  type: z.string(),
  vaultId: z.string(),
  timestamp: z.string(),
  payload: z.record(z.string(), z.unknown()),
})
type StreamEvent = z.output<typeof StreamEvent>

export interface Opening {
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly lastEventId?: string
}

/** A client of one stream that follows the standard's rules and can stop reading. */
export interface Reader {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The body where it is not a stream. */
  readonly problem: string
  readonly events: readonly StreamEvent[]
  readonly comments: number
  /** As a standard client keeps it, also when no event came with it. */
  readonly lastEventId: string
  readonly retryMs: number
  /** Resolves when this many events have come. */
  until(count: number): Promise<readonly StreamEvent[]>
  /** Resolves when an event of that type has come. */
  untilType(type: string): Promise<readonly StreamEvent[]>
  /** Resolves when a comment has come. */
  untilComment(): Promise<void>
  /** Resolves when the start of the stream has come. */
  untilOpening(): Promise<void>
  /** How the response ended: complete, or cut. */
  readonly ended: Promise<'end' | 'cut'>
  pause(): void
  resume(): void
  leave(): void
}

/** Opens `GET /vaults/{id}/events` and resolves when the status is there. */
export async function openStream(base: string, vaultId: string, opening: Opening): Promise<Reader> {
  const query = new URLSearchParams(opening.query).toString()
  const requested = send(`${base}/vaults/${vaultId}/events${query === '' ? '' : `?${query}`}`, {
    agent: false,
    headers: {
      accept: 'text/event-stream',
      ...(opening.key === undefined ? {} : { authorization: `Bearer ${opening.key}` }),
      ...(opening.lastEventId === undefined ? {} : { 'last-event-id': opening.lastEventId }),
    },
  })
  requested.end()
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    requested.on('response', resolve).on('error', reject),
  )
  const reader = new StreamReader(requested, response)
  if (response.statusCode !== 200) await reader.ended
  return reader
}

class StreamReader implements Reader {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly events: StreamEvent[] = []
  readonly ended: Promise<'end' | 'cut'>
  comments = 0
  lastEventId = ''
  retryMs = 0
  problem = ''
  readonly #request: ClientRequest
  readonly #response: IncomingMessage
  #text = ''
  #changed = Promise.withResolvers<void>()

  constructor(requested: ClientRequest, response: IncomingMessage) {
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    this.#request = requested
    this.#response = response
    this.ended = new Promise((resolve) => {
      response.on('end', () => resolve('end')).on('close', () => resolve('cut'))
      response.on('error', () => resolve('cut'))
    })
    requested.on('error', () => undefined)
    response.setEncoding('utf8').on('data', (text: string) => this.#read(text))
  }

  async until(count: number): Promise<readonly StreamEvent[]> {
    await this.#waitFor(() => this.events.length >= count, `event ${count}`)
    return this.events
  }

  async untilType(type: string): Promise<readonly StreamEvent[]> {
    await this.#waitFor(() => this.events.some((reported) => reported.type === type), type)
    return this.events
  }

  untilComment(): Promise<void> {
    return this.#waitFor(() => this.comments > 0, 'a comment')
  }

  untilOpening(): Promise<void> {
    return this.#waitFor(() => this.retryMs > 0, 'the opening')
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  leave(): void {
    this.#request.destroy()
  }

  async #waitFor(isSo: () => boolean, what: string): Promise<void> {
    const over = this.ended.then(() => 'over' as const)
    while (!isSo()) {
      const how = await Promise.race([this.#changed.promise, over])
      if (how === 'over' && !isSo()) throw new Error(`the stream ended before ${what}`)
    }
  }

  #read(text: string): void {
    if (this.status !== 200) {
      this.problem += text
      return
    }
    this.#text += text
    for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
      this.#take(this.#text.slice(0, end).split('\n'))
      this.#text = this.#text.slice(end + 2)
    }
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  #take(lines: readonly string[]): void {
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
      if (name === '') this.comments += 1
      else if (name === 'retry') this.retryMs = Number(value)
      else if (name === 'id') this.lastEventId = value
      else if (name === 'data') this.#keep(StreamEvent.parse(JSON.parse(value)))
      else throw new Error(`a line that the stream should not have: ${line}`)
    }
  }

  #keep(reported: StreamEvent): void {
    if (reported.eventId !== this.lastEventId) throw new Error('an event under another id than its own')
    this.events.push(reported)
  }
}
