import { formatUsd, parseUsd } from './dollars.ts'

/** The limits that are counted over time. */
export type CountedLimit = 'perHostPerDay' | 'perDay'

/** An amount that is about to be signed away. Dollars are decimal texts. */
export interface ReservationRequest {
  /** Unique; names the reservation in `commit` and `release`. */
  readonly id: string
  readonly host: string
  /** The UTC day that it counts to, as `2026-11-21`. */
  readonly day: string
  readonly usd: string
  readonly limits: { readonly [limit in CountedLimit]?: string | undefined }
}

/** `spentUsd` is what the exceeded limit had already counted. */
export type ReservationVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: CountedLimit; readonly spentUsd: string }

/**
 * Where spending is counted. An implementation for several processes must make `reserve` one atomic step (a transaction with a row
 * lock, a script in Redis): two calls that both look first and add later would exceed the limit together.
 */
export interface Ledger {
  /** Counts the amount at once if every limit holds with it, or counts nothing. A throw refuses the payment. */
  reserve(request: ReservationRequest): Promise<ReservationVerdict>
  /** The payment was accepted: what was reserved is spent for good. */
  commit(id: string): Promise<void>
  /** Nothing can be taken any more: stops counting it. Unknown and committed ids do nothing. */
  release(id: string): Promise<void>
}

type Held = { readonly host: string; readonly day: string; readonly usd: bigint }
type Day = { total: bigint; readonly byHost: Map<string, bigint>; readonly held: Map<string, Held> }

const daysKept = 3

/** Counts in this process's memory, forgotten when it ends. Reserving is one synchronous step, so calls at once cannot pass each other. */
export function memoryLedger(): Ledger {
  const days = new Map<string, Day>()
  return {
    reserve: async (request) => {
      const usd = dollars(request.usd)
      const day = dayOf(days, request.day)
      const exceeded = exceededLimit(day, request, usd)
      if (exceeded !== undefined) return exceeded
      count(day, { host: request.host, day: request.day, usd })
      day.held.set(request.id, { host: request.host, day: request.day, usd })
      return { ok: true }
    },
    commit: async (id) => {
      for (const day of days.values()) day.held.delete(id)
    },
    release: async (id) => {
      for (const day of days.values()) {
        const held = day.held.get(id)
        if (held === undefined) continue
        day.held.delete(id)
        count(day, { ...held, usd: -held.usd })
      }
    },
  }
}

function dayOf(days: Map<string, Day>, name: string): Day {
  const known = days.get(name)
  if (known !== undefined) return known
  const day: Day = { total: 0n, byHost: new Map(), held: new Map() }
  days.set(name, day)
  const old = [...days.keys()].sort().slice(0, -daysKept)
  for (const each of old) if (each !== name) days.delete(each)
  return day
}

function exceededLimit(day: Day, request: ReservationRequest, usd: bigint): ReservationVerdict | undefined {
  const spent = { perHostPerDay: day.byHost.get(request.host) ?? 0n, perDay: day.total }
  for (const limit of ['perHostPerDay', 'perDay'] as const) {
    const most = request.limits[limit]
    if (most !== undefined && spent[limit] + usd > dollars(most)) {
      return { ok: false, limit, spentUsd: formatUsd(spent[limit]) }
    }
  }
  return undefined
}

function count(day: Day, { host, usd }: Held): void {
  day.total += usd
  day.byHost.set(host, (day.byHost.get(host) ?? 0n) + usd)
}

function dollars(text: string): bigint {
  const usd = parseUsd(text)
  if (usd === undefined) throw new RangeError('not an amount of dollars')
  return usd
}
