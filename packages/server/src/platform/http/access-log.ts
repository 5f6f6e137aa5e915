import type { Log } from '../log.ts'

interface Requested {
  readonly id: string
  readonly method: string
  readonly routeOptions: { readonly url?: string | undefined }
}

interface Responded {
  readonly statusCode: number
  readonly elapsedTime: number
}

/** Writes a line for a response that has ended. The path is the declared one: a requested one may hold a private id or a query. */
export function logAccess(log: Log, { id, method, routeOptions }: Requested, reply: Responded): void {
  const ms = Math.round(reply.elapsedTime)
  log.info({ requestId: id, method, route: routeOptions.url, status: reply.statusCode, ms }, 'access')
}
