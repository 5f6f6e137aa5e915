import { routePatternOf } from '@purser/protocol'
import type { Purser } from '../client.ts'
import type { RouteSnapshot } from '../registry.ts'
import { pause } from '../transport.ts'
import type { Fault } from './faults.ts'
import { bodySeen, headersSeen, isPlainPattern, mediaTypeOf, querySeen, type RequestShape } from './request-shape.ts'

const againMs = 3_600_000
/**
 * The maximum number of routes (by method and price) remembered for an hour. Above it, new routes are not reported
 * until an entry is an hour old.
 */
const routesMax = 1_000
const waitingMax = 100
const timeoutMs = 5_000

/** A call that was paid for and served. */
export interface SoldCall {
  readonly context: { readonly method: string; readonly resource: string; readonly price: string }
  readonly protocol: 'x402' | 'mpp'
  /** The path prefix of the public URL, before the routes of the router. */
  readonly basePath: string
  readonly contentType: string | undefined
  readonly look: RequestShape
}

/** Records a sold call. Never throws or waits. */
export type ReportSold = (call: SoldCall) => void

interface Reporting {
  readonly purser: Pick<Purser, 'registry'>
  readonly onFault: (fault: Fault) => void
  readonly now?: () => number
}

/**
 * Reports sold routes to Purser's registry in the background: one report at a time, at most one per hour for each
 * method, route and price. Each is sent once, with a timeout of 5 s. While 100 are waiting, others are dropped.
 * Reports contain names and kinds of inputs, never values. Failures go to `onFault` and have no other effect.
 */
export function openReports({ purser, onFault, now = Date.now }: Reporting): ReportSold {
  const reportedAt = new Map<string, number>()
  const waiting: RouteSnapshot[] = []
  let isSending = false
  const send = async (): Promise<void> => {
    isSending = true
    // The response is sent first.
    await pause(0)
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await purser.registry.snapshots.create(next, { timeoutMs, maxRetries: 0 })
      } catch (error) {
        onFault({ stage: 'registry', error })
      }
    }
    isSending = false
  }
  const isDue = (key: string): boolean => {
    const before = now() - againMs
    for (const [oldest, at] of reportedAt) {
      if (at > before) break
      reportedAt.delete(oldest)
    }
    return !reportedAt.has(key) && reportedAt.size < routesMax && waiting.length < waitingMax
  }
  return (call) => {
    try {
      const routePattern = patternOf(call)
      const key = JSON.stringify([call.context.method, routePattern, call.context.price])
      if (!isDue(key)) return
      reportedAt.set(key, now())
      waiting.push(snapshotOf(call, routePattern))
      if (!isSending) void send()
    } catch (error) {
      onFault({ stage: 'registry', error })
    }
  }
}

function patternOf({ context, basePath, look }: SoldCall): string {
  const known = look.route !== undefined && isPlainPattern(look.route) ? basePath + look.route : undefined
  return routePatternOf(known ?? new URL(context.resource).pathname)
}

function snapshotOf({ context, protocol, contentType, look }: SoldCall, routePattern: string): RouteSnapshot {
  const { host, searchParams } = new URL(context.resource)
  const bodyContentType = mediaTypeOf(contentType)
  return {
    host,
    method: context.method,
    routePattern,
    headers: headersSeen(look.headerNames),
    queryParams: querySeen(searchParams),
    bodyParams: bodySeen(look.body),
    ...(bodyContentType !== undefined && { bodyContentType }),
    amount: context.price,
    protocol,
  }
}
