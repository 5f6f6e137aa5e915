import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Query, ResponseBody } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

/** A request that the service received, without its body. */
export type LoggedRequest = ResponseBody<operations['requests.get']>
/** Filters of the request log. */
export type RequestQuery = Query<operations['requests.list']>

/** The request log: the last requests of the organisation. */
export function requestsOf(send: Send) {
  return {
    /** The latest requests of the organisation, newest first. */
    list: (query?: RequestQuery, options?: CallOptions): Listing<LoggedRequest> =>
      list(send, '/requests', { ...options, query }),
    /** Returns a request by the `X-Request-Id` of its response. */
    get: (requestId: string, options?: CallOptions): Promise<LoggedRequest> =>
      call(send, 'GET', '/requests/{requestId}', { ...options, params: { requestId } }),
  }
}
