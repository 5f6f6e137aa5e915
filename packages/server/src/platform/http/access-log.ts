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

type AccessHook = (requested: Requested, reply: Responded, done: () => void) => void

/** Returns what writes a line for each response that has ended. The path is the declared one: a requested one may hold a private id or a query. */
export function accessHook(log: Log): AccessHook {
  return ({ id, method, routeOptions }, reply, done) => {
    const ms = Math.round(reply.elapsedTime)
    log.info({ requestId: id, method, route: routeOptions.url, status: reply.statusCode, ms }, 'access')
    done()
  }
}
