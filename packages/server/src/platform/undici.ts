import { createRequire } from 'node:module'
import type * as Undici from 'undici'

/*
 * The parts of undici that the service uses. The entry of the package also loads its fetch, WebSocket, caches and mocks: 2.2 MB of heap in each process.
 */

const load = createRequire(import.meta.url)

export type Pool = Undici.Pool
/** Opens a connection. */
export type Connector = Undici.buildConnector.connector
export const Pool: typeof Undici.Pool = load('undici/lib/dispatcher/pool.js')
export const errors: typeof Undici.errors = load('undici/lib/core/errors.js')
export const buildConnector: typeof Undici.buildConnector = load('undici/lib/core/connect.js')

const requestOn: (this: Pool, options: Undici.Dispatcher.RequestOptions) => Promise<Undici.Dispatcher.ResponseData> =
  load('undici/lib/api/api-request.js')

/** Sends a request over a pool, as `pool.request` does where the whole package is loaded. */
export function requestWith(
  pool: Pool,
  options: Undici.Dispatcher.RequestOptions,
): Promise<Undici.Dispatcher.ResponseData> {
  return requestOn.call(pool, options)
}
