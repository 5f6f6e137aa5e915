import type { IncomingMessage, ServerResponse } from 'node:http'

/** How a customer's server treats the first copy of an event; it accepts every later one. */
export interface Manner {
  readonly name: string
  /** The event type of its webhook: each server gets a share of the events for itself. */
  readonly type: string
  /** `number` counts the received events. */
  first(number: number, response: ServerResponse, request: IncomingMessage): void
  /** The server is down for `goneMs` after every `every` events. */
  readonly restarts?: { readonly every: number; readonly goneMs: number; readonly times: number }
}

function take(response: ServerResponse): void {
  response.writeHead(200).end()
}

/** Receivers that misbehave in different ways, and a correct one. */
export const manners: readonly Manner[] = [
  { name: 'well', type: 'payment.received', first: (_, response) => take(response) },
  {
    name: 'fails',
    type: 'payment.settled',
    first: (number, response) => {
      if (number % 15 === 0) response.writeHead(503, { 'retry-after': '6' }).end('later')
      else if (number % 5 === 0) response.writeHead(500).end('broken')
      else take(response)
    },
  },
  {
    name: 'stalls',
    type: 'vault.sealed',
    first: (number, response) => {
      if (number % 600 !== 0) take(response)
    },
  },
  {
    name: 'slow',
    type: 'vault.expired',
    first: (number, response) => void setTimeout(() => take(response), 5 + (number % 40)),
  },
  {
    name: 'drops',
    type: 'vault.extended',
    first: (number, response, request) => {
      if (number % 7 === 0) request.socket.destroy()
      else if (number % 11 === 0)
        response.writeHead(200, { 'content-length': 10 }).end('half', () => request.socket.destroy())
      else take(response)
    },
  },
  {
    name: 'restarts',
    type: 'vault.persisted',
    first: (_, response) => take(response),
    restarts: { every: 500, goneMs: 1_500, times: 2 },
  },
]
