import { formatUsd, parseUsd } from '@purser/protocol'

/** The limits that accumulate over time. */
export type CountedLimit = 'perHostPerDay' | 'perDay'

/** An amount to reserve before signing. Dollars are decimal text. */
export interface ReservationRequest {
  /** Unique id of the reservation, for `commit` and `release`. */
  readonly id: string
  readonly host: string
  /** The UTC day of the payment, such as `2026-11-21`. */
  readonly day: string
  readonly usd: string
  readonly limits: { readonly [limit in CountedLimit]?: string | undefined }
}

/** `spentUsd` is the amount already counted towards the exceeded limit. */
export type ReservationVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly limit: CountedLimit; readonly spentUsd: string }

/**
 * Counts spending. An implementation for several processes must make `reserve` atomic (a transaction with a row lock,
 * a script in Redis). Otherwise two calls that read first and add later could exceed the limit together.
 */
export interface Ledger {
  /** Counts the amount at once if no limit would be exceeded; otherwise counts nothing. A throw refuses the payment. */
  reserve(request: ReservationRequest): Promise<ReservationVerdict>
  /** Marks the reserved amount as spent: the payment was accepted. */
  commit(id: string): Promise<void>
  /** Releases the reservation: nothing can be charged any more. Unknown and committed ids have no effect. */
  release(id: string): Promise<void>
}

type Reserved = { readonly host: string; readonly day: string; readonly usd: bigint }
type Day = { total: bigint; readonly byHost: Map<string, bigint>; readonly reserved: Map<string, Reserved> }

const daysKept = 3

/**
 * Returns a ledger in this process's memory. `reserve` is synchronous, so simultaneous calls cannot exceed a limit
 * together.
 *
 * @example
 * import { createPayingFetch, memoryLedger, type Signer } from '@purser/sdk/pay'
 *
 * export function fetchesOf(signers: readonly Signer[]) {
 *   const ledger = memoryLedger() // one budget for all of them
 *   return signers.map((signer) => createPayingFetch({ signer, ledger, limits: { perCall: '0.05', perDay: '5' } }))
 * }
 */
export function memoryLedger(): Ledger {
  const days = new Map<string, Day>()
  return {
    reserve: async (request) => {
      const usd = dollars(request.usd)
      const day = dayOf(days, request.day)
      const exceeded = exceededLimit(day, request, usd)
      if (exceeded !== undefined) return exceeded
      count(day, { host: request.host, day: request.day, usd })
      day.reserved.set(request.id, { host: request.host, day: request.day, usd })
      return { ok: true }
    },
    commit: async (id) => {
      for (const day of days.values()) day.reserved.delete(id)
    },
    release: async (id) => {
      for (const day of days.values()) {
        const reserved = day.reserved.get(id)
        if (reserved === undefined) continue
        day.reserved.delete(id)
        count(day, { ...reserved, usd: -reserved.usd })
      }
    },
  }
}

function dayOf(days: Map<string, Day>, name: string): Day {
  const known = days.get(name)
  if (known !== undefined) return known
  const day: Day = { total: 0n, byHost: new Map(), reserved: new Map() }
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

function count(day: Day, { host, usd }: Reserved): void {
  day.total += usd
  day.byHost.set(host, (day.byHost.get(host) ?? 0n) + usd)
}

function dollars(text: string): bigint {
  const usd = parseUsd(text)
  if (usd === undefined) throw new RangeError('not a dollar amount')
  return usd
}
