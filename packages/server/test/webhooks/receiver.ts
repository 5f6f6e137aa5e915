import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

/** A request as it arrived. */
export interface Arrived {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly eventId: string
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly at: number
}

export interface Receiver {
  readonly url: string
  readonly arrived: readonly Arrived[]
  /** How it answers each request from now on. */
  answer: Answering
  /** Resolves when this many have arrived in all. */
  until(count: number): Promise<void>
  ids(): readonly string[]
  stop(): Promise<void>
}

export type Answering = (response: ServerResponse, request: IncomingMessage, arrived: Arrived) => void

const Body = z.object({ eventId: z.string(), type: z.string(), payload: z.record(z.string(), z.unknown()) })

/** Answers with a status, and headers and a body if given. */
export function status(code: number, headers: Readonly<Record<string, string>> = {}, body = ''): Answering {
  return (response) => void response.writeHead(code, headers).end(body)
}

/** A customer's server: records what arrives and answers as configured, with 200 at first. */
export async function aReceiver(answer: Answering = status(200)): Promise<Receiver> {
  const arrived: Arrived[] = []
  const waiting = new Set<() => void>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8')
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
      const one = { headers, body, ...Body.parse(JSON.parse(body)), at: performance.now() }
      arrived.push(one)
      receiver.answer(response, request, one)
      for (const look of waiting) look()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const receiver: Receiver = {
    url: `http://127.0.0.1:${port}/hook`,
    arrived,
    answer,
    until: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (arrived.length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    ids: () => arrived.map(({ eventId }) => eventId),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return receiver
}
