import type { Caller } from '../ctx.ts'
import type { RequestId } from '../ids.ts'
import type { Log } from '../log.ts'
import { type RequestSpan, startRequestSpan } from '../tracing/spans.ts'
import type { RawResponse } from './call.ts'
import type { HttpOptions } from './http-options.ts'
import { problemCodeOf } from './problem.ts'

/** The fields of a request by which its response can be reported. */
export interface Reportable {
  /** Set once the caller is known, until the response begins. */
  reportResponse?: ((response: RawResponse) => void) | undefined
}

interface Request extends Reportable {
  readonly id: string
  readonly method: string
}

/** Has the response to a request reported, now that its caller is known. `arrivedAt` is a time of `performance.now()`. */
export function reportResponse(
  request: Request,
  { arrivedAt, ...known }: { readonly caller: Caller; readonly route: string; readonly arrivedAt: number },
  { onResponse }: Pick<HttpOptions, 'onResponse'>,
): void {
  if (onResponse === undefined) return
  const { id, method } = request
  request.reportResponse = (response) =>
    onResponse({
      ...known,
      requestId: id as RequestId,
      method,
      status: response.status,
      durationMs: performance.now() - arrivedAt,
      code: problemCodeOf(response),
    })
}

/** Reports a response that begins; once for each request. */
export function responseBegun(request: Request, response: RawResponse): void {
  request.reportResponse?.(response)
  request.reportResponse = undefined
}

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

interface TracedRequest {
  readonly id: string
  readonly method: string
  readonly headers: Readonly<Record<string, unknown>>
  readonly routeOptions: { readonly url?: string | undefined }
}

interface Responding {
  readonly raw: {
    readonly headersSent: boolean
    readonly statusCode: number
    once(event: 'close', listener: () => void): unknown
  }
}

/** Hooks that trace each request, if spans are exported, from before anything else is done until its response has ended. */
export function tracedRequests() {
  const spans = new WeakMap<TracedRequest, RequestSpan>()
  return {
    begin(request: TracedRequest, { raw }: Responding, done: () => void): void {
      const { id, method, headers, routeOptions } = request
      const span = startRequestSpan({ id, method, headers, route: routeOptions.url })
      if (span === undefined) done()
      else {
        spans.set(request, span)
        raw.once('close', () => span.end(raw.headersSent ? raw.statusCode : undefined))
        span.within(done)
      }
    },
    /** A body is read outside of the span: what handles the request enters it anew. */
    enter(request: TracedRequest, _reply: Responding, done: () => void): void {
      const span = spans.get(request)
      if (span === undefined) done()
      else span.within(done)
    },
  }
}
