import { routePatternOf } from '@purser/protocol'
import type { Purser } from '../client.ts'
import type { RouteSnapshot } from '../registry.ts'
import { pause } from '../transport.ts'
import type { Sale } from './ask.ts'
import type { Admission } from './core.ts'
import { bodySeen, headersSeen, isPlainPattern, type Look, mediaTypeOf, querySeen } from './observed.ts'
import type { Fault } from './options.ts'

const againMs = 3_600_000
/** Routes, by method and price, of which an hour is remembered: over them, nothing new is reported until one is an hour old. */
const routesMax = 1_000
const waitingMax = 100
const timeoutMs = 5_000

/** A call that was paid for and answered. */
export interface SoldCall {
  readonly sale: Pick<Sale, 'method' | 'resource' | 'price'>
  readonly protocol: 'x402' | 'mpp'
  /** The path at which payers reach the server, before the routes of its router. */
  readonly basePath: string
  readonly contentType: string | undefined
  readonly look: Look
}

/** Takes note of a sold call. Never throws and never waits. */
export type ReportSold = (call: SoldCall) => void

interface Reporting {
  readonly purser: Pick<Purser, 'registry'>
  readonly onFault: (fault: Fault) => void
  readonly now?: () => number
}

/**
 * Tells Purser's registry of the routes that are sold here, behind the back of the requests: one message at a time, at most one an hour for
 * each method, route and price, sent once and given up after 5 s. While 100 wait, others are passed over. Names and kinds of what a route
 * takes are told, never a value. What goes wrong is told to `onFault` and changes nothing else.
 */
export function openReports({ purser, onFault, now = Date.now }: Reporting): ReportSold {
  const reportedAt = new Map<string, number>()
  const waiting: RouteSnapshot[] = []
  let isSending = false
  const send = async (): Promise<void> => {
    isSending = true
    // The answer that was sold leaves first.
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
      const key = JSON.stringify([call.sale.method, routePattern, call.sale.price])
      if (!isDue(key)) return
      reportedAt.set(key, now())
      waiting.push(snapshotOf(call, routePattern))
      if (!isSending) void send()
    } catch (error) {
      onFault({ stage: 'registry', error })
    }
  }
}

function patternOf({ sale, basePath, look }: SoldCall): string {
  const known = look.route !== undefined && isPlainPattern(look.route) ? basePath + look.route : undefined
  return routePatternOf(known ?? new URL(sale.resource).pathname)
}

function snapshotOf({ sale, protocol, contentType, look }: SoldCall, routePattern: string): RouteSnapshot {
  const { host, searchParams } = new URL(sale.resource)
  const bodyContentType = mediaTypeOf(contentType)
  return {
    host,
    method: sale.method,
    routePattern,
    headers: headersSeen(look.headerNames),
    queryParams: querySeen(searchParams),
    bodyParams: bodySeen(look.body),
    ...(bodyContentType !== undefined && { bodyContentType }),
    amount: sale.price,
    protocol,
  }
}

/** What the report is made of, beside the sale. */
interface Seen {
  readonly protocol: 'x402' | 'mpp'
  readonly contentType: string | undefined
  readonly look: (() => Look) | undefined
}

/** The admission as it was, but that a sale which comes to its end is reported; where nobody looks, nothing is. */
export function reporting(sale: Sale, { protocol, contentType, look }: Seen, admission: Admission): Admission {
  const { reportSold, publicUrl, onFault } = sale.till
  if (admission.kind !== 'paid' || reportSold === undefined || look === undefined) return admission
  const conclude = async () => {
    const conclusion = await admission.conclude()
    if (conclusion.kind === 'withhold') return conclusion
    try {
      const basePath = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
      reportSold({ sale, protocol, basePath, contentType, look: look() })
    } catch (error) {
      onFault({ stage: 'registry', error })
    }
    return conclusion
  }
  return { ...admission, conclude }
}
