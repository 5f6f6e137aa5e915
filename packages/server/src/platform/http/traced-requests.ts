import { type RequestSpan, startRequestSpan } from '../tracing/spans.ts'

interface Requested {
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

/** Hooks that trace each request, from before anything else is done until its response has ended. */
export function tracedRequests() {
  const spans = new WeakMap<Requested, RequestSpan>()
  return {
    begin(request: Requested, { raw }: Responding, done: () => void): void {
      const { id, method, headers, routeOptions } = request
      const span = startRequestSpan({ id, method, headers, route: routeOptions.url })
      spans.set(request, span)
      raw.once('close', () => span.end(raw.headersSent ? raw.statusCode : undefined))
      span.within(done)
    },
    /** A body is read outside of the span: what handles the request enters it anew. */
    enter(request: Requested, _reply: Responding, done: () => void): void {
      const span = spans.get(request)
      if (span === undefined) done()
      else span.within(done)
    },
  }
}
