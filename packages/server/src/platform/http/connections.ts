import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { addressBlock } from './admission.ts'
import type { HttpOptions } from './http-options.ts'

export interface ConnectionLimits {
  /** Most open connections of the server. */
  readonly connectionsMax: number
  /** Most open connections of one address that have made no request with a valid credential; undefined behind a proxy. */
  readonly unknownPerAddressMax: number | undefined
}

/** Records that a connection made a request with a valid credential. */
export type Trust = (socket: Socket) => void

/**
 * Limits the connections of a server. Connections that only wait are bounded per address, so that one host which opens many and sends
 * nothing leaves places for others. Connections of callers with a valid credential count only against the total.
 */
export function limitConnections(server: Server, { connectionsMax, unknownPerAddressMax }: ConnectionLimits): Trust {
  server.maxConnections = connectionsMax
  if (unknownPerAddressMax === undefined) return () => undefined
  const unknown = new Map<string, number>()
  const leavers = new WeakMap<Socket, () => void>()
  server.on('connection', (socket: Socket) => {
    const block = addressBlock(socket.remoteAddress ?? '')
    const count = (unknown.get(block) ?? 0) + 1
    if (count > unknownPerAddressMax) return void socket.destroy()
    unknown.set(block, count)
    const leave = (): void => {
      if (!leavers.delete(socket)) return
      const left = (unknown.get(block) ?? 1) - 1
      if (left === 0) unknown.delete(block)
      else unknown.set(block, left)
    }
    leavers.set(socket, leave)
    socket.once('close', leave)
  })
  return (socket) => leavers.get(socket)?.()
}

/** The library's form: a number is a count of proxies, each of which adds the address that it was called from. */
export function proxiesOf(
  proxies: HttpOptions['trustProxy'],
): boolean | string[] | ((address: string, hop: number) => boolean) {
  if (typeof proxies === 'number') return (_, hop) => hop < proxies
  return proxies === false ? false : [...proxies]
}

/** Turns of the event loop in which waiting connections are accepted and sent requests are read, so that none of them is cut. */
const receiveTurns = 3

export async function receiveWaiting(): Promise<void> {
  for (let turn = 0; turn < receiveTurns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
