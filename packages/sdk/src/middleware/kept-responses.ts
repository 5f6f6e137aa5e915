import type { VerifiedPayment } from '../payments.ts'
import type { Again, Conclusion } from './conclusion.ts'
import type { OwnResponse } from './responses.ts'

/** A response that did not reach its payer, with everything needed to settle and serve it later. */
export interface Kept {
  readonly response: OwnResponse
  readonly payment: VerifiedPayment
  /** Settles the payment and decides whether the response may be served. */
  readonly conclude: (again: Again) => Promise<Conclusion>
  /** The redemption that this process had when the payer disconnected. It is returned before the next redemption. */
  readonly redemptionToken?: string | undefined
}

/** A kept response that one request is serving. The request puts it back or drops it. */
interface TakenResponse extends Kept {
  readonly putBack: (redemptionToken?: string) => void
  readonly drop: () => void
}

export interface KeptResponses {
  readonly keep: (key: string, kept: Kept) => void
  /** `busy` while another request is serving it. Undefined if there is none. */
  readonly take: (key: string) => TakenResponse | 'busy' | undefined
}

interface Bounds {
  readonly bytesMax: number
  readonly msMax: number
  /** Called with a response that is dropped without having been served. */
  readonly onDropped: (kept: Kept) => void
}

interface Entry {
  kept: Kept
  readonly endsAt: number
  readonly bytes: number
  isTaken: boolean
}

/** The size of an entry without its body and key, in bytes. */
const entryBytes = 4_096

/**
 * Undelivered responses whose payment may have been settled, by credential and request. They are kept in this
 * process, for `msMax` and within `bytesMax`. Beyond that the oldest response of the payer with the most bytes is
 * dropped, so that the payments of one payer cost no other payer a response. A response that a request is serving is never dropped
 * until that request drops it or puts it back.
 */
export function openKeptResponses({ bytesMax, msMax, onDropped }: Bounds, now: () => number = Date.now): KeptResponses {
  const entries = new Map<string, Entry>()
  let bytes = 0
  const remove = (key: string, entry: Entry): void => {
    if (entries.get(key) !== entry) return
    entries.delete(key)
    bytes -= entry.bytes
  }
  const drop = (key: string, entry: Entry): void => {
    remove(key, entry)
    onDropped(entry.kept)
  }
  const prune = (): void => {
    for (const [key, entry] of entries) {
      if (entry.endsAt > now()) break
      if (!entry.isTaken) drop(key, entry)
    }
    while (bytes > bytesMax) {
      const largest = oldestOfLargestPayer(entries)
      if (largest === undefined) return
      drop(...largest)
    }
  }
  return {
    keep: (key, kept) => {
      const known = entries.get(key)
      if (known !== undefined) remove(key, known)
      const size = entryBytes + key.length * 2 + (kept.response.body?.length ?? 0)
      entries.set(key, { kept, endsAt: now() + msMax, bytes: size, isTaken: false })
      bytes += size
      prune()
    },
    take: (key) => {
      if (entries.size === 0) return undefined
      prune()
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (entry.isTaken) return 'busy'
      entry.isTaken = true
      return {
        ...entry.kept,
        putBack: (redemptionToken) => {
          entry.kept = { ...entry.kept, redemptionToken }
          entry.isTaken = false
          prune()
        },
        drop: () => remove(key, entry),
      }
    },
  }
}

/** Returns the oldest response of the payer whose responses have the most bytes, of those that no request is serving. */
function oldestOfLargestPayer(entries: ReadonlyMap<string, Entry>): [string, Entry] | undefined {
  const free = [...entries].filter(([, { isTaken }]) => !isTaken)
  const totals = new Map<string, number>()
  const payerOf = ([, { kept }]: [string, Entry]): string => kept.payment.payer?.toLowerCase() ?? ''
  for (const one of free) totals.set(payerOf(one), (totals.get(payerOf(one)) ?? 0) + one[1].bytes)
  // Too many payers for the arguments of one call.
  const most = [...totals.values()].reduce((left, right) => Math.max(left, right), 0)
  return free.find((one) => totals.get(payerOf(one)) === most)
}
