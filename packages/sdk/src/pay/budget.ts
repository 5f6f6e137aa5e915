import { formatUsd, parseUsd } from '@purser/protocol'
import type { LedgerEntry, ReservationRequest, ReservationVerdict, SignedCredential } from './ledger.ts'

type Entry = LedgerEntry & { readonly usd: bigint }
type Day = { total: bigint; readonly byHost: Map<string, bigint> }

/** Whole days after which a payment without a named purchase is forgotten: no credential is valid that long. */
const daysKept = 7

/** The payments of a budget, in order. It does no I/O and reads no clock, so equal steps lead to equal results. */
export interface Budget {
  reserve(request: ReservationRequest): ReservationVerdict
  /** Whether the payment was reserved and is now signed. */
  signed(id: string, credential: SignedCredential): boolean
  spent(id: string): void
  release(id: string): void
  find(purchase: string): LedgerEntry | undefined
  unfinished(): readonly LedgerEntry[]
}

/** Returns a budget of which nothing is spent. */
export function emptyBudget(): Budget {
  const days = new Map<string, Day>()
  const byId = new Map<string, Entry>()
  const idOf = new Map<string, string>()

  const remove = ({ id, purchase }: Entry) => {
    byId.delete(id)
    idOf.delete(purchase)
  }
  const find = (purchase: string) => byId.get(idOf.get(purchase) ?? '')

  return {
    reserve: ({ id, purchase, day, payment, limits }) => {
      const earlier = find(purchase) ?? byId.get(id)
      if (earlier !== undefined) return { ok: false, earlier: shown(earlier) }
      const usd = dollars(payment.amountUsd)
      const known = dayOf(days, day)
      const exceeded = exceededLimit(known, { host: payment.host, usd, limits })
      if (exceeded !== undefined) return exceeded
      if (known.total === 0n) for (const old of byId.values()) if (isForgotten(old, day)) remove(old)
      count(known, payment.host, usd)
      byId.set(id, { id, purchase, day, payment, usd, state: 'reserved' })
      idOf.set(purchase, id)
      return { ok: true }
    },
    signed: (id, credential) => {
      const entry = byId.get(id)
      if (entry?.state !== 'reserved') return false
      byId.set(id, { ...entry, state: 'signed', credential })
      return true
    },
    spent: (id) => {
      const entry = byId.get(id)
      if (entry?.state !== 'signed') return
      if (entry.purchase === id) remove(entry)
      else byId.set(id, { ...entry, state: 'spent' })
    },
    release: (id) => {
      const entry = byId.get(id)
      if (entry === undefined || entry.state === 'spent') return
      remove(entry)
      count(dayOf(days, entry.day), entry.payment.host, -entry.usd)
    },
    find: (purchase) => {
      const entry = find(purchase)
      return entry && shown(entry)
    },
    unfinished: () => [...byId.values()].filter(({ state }) => state !== 'spent').map(shown),
  }
}

function shown({ usd: _, ...entry }: Entry): LedgerEntry {
  return entry
}

function dayOf(days: Map<string, Day>, name: string): Day {
  const day = days.get(name) ?? { total: 0n, byHost: new Map() }
  days.set(name, day)
  return day
}

function isForgotten({ id, purchase, day }: Entry, today: string): boolean {
  return purchase === id && Date.parse(today) - Date.parse(day) > daysKept * 86_400_000
}

/** The limit that one more payment on a day would exceed. */
export function exceededLimit(
  day: { readonly total: bigint; readonly byHost: ReadonlyMap<string, bigint> },
  { host, usd, limits }: { readonly host: string; readonly usd: bigint } & Pick<ReservationRequest, 'limits'>,
): ReservationVerdict | undefined {
  const spent = { perHostPerDay: day.byHost.get(host) ?? 0n, perDay: day.total }
  for (const limit of ['perHostPerDay', 'perDay'] as const) {
    const most = limits[limit]
    if (most !== undefined && spent[limit] + usd > dollars(most)) {
      return { ok: false, limit, spentUsd: formatUsd(spent[limit]) }
    }
  }
  return undefined
}

function count(day: Day, host: string, usd: bigint): void {
  day.total += usd
  day.byHost.set(host, (day.byHost.get(host) ?? 0n) + usd)
}

/** An amount in units of 10^-18 dollars. */
export function dollars(text: string): bigint {
  const usd = parseUsd(text)
  if (usd === undefined) throw new RangeError('not a dollar amount')
  return usd
}
