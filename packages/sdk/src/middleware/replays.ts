import type { OwnResponse } from './responses.ts'

/** A purchase with a payment identifier. A repeat receives the kept response if all three members match. */
interface Purchase {
  /** The payer that the credential names. It paid for the kept response. */
  readonly payer: string
  /** The payment identifier (x402 extension `payment-identifier`). */
  readonly id: string
  /** Identifies the credential and its request: method, URL, and body if it is bound. */
  readonly fingerprint: string
}

/**
 * The decision about a purchase: repeat the response, refuse it (its response is not kept, or the id belongs to
 * another payment), or sell.
 */
export type Claim =
  | { readonly kind: 'replay'; readonly response: OwnResponse }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'claimed'; readonly keep: (response: OwnResponse) => void; readonly free: () => void }

export interface Replays {
  readonly claim: (purchase: Purchase) => Claim
}

interface Running {
  readonly fingerprint: string
  readonly endsAt: number
}

interface Kept extends Running {
  readonly payer: string
  readonly response: OwnResponse
  readonly bytes: number
}

const entriesMax = 1_000
const runningMax = 10_000
const responseBytesMax = 1_000_000
const bytesMax = 32_000_000
/** The size of an entry without the response body, in bytes. */
const entryBytes = 4_096

/**
 * Keeps responses for payers whose connection broke. Within `ttlMs`, the same credential for the same request gets
 * the same response instead of a refusal, without a call to Purser. Kept in this process, within 1,000 responses and 32
 * MB; beyond that the oldest response of the payer with the most bytes is dropped. Responses above 1 MB are not kept. A purchase
 * in progress does not count toward these limits, and blocks no other credential. Purser, not this cache, prevents a credential from paying twice.
 */
export function openReplays(ttlMs: number, now: () => number = Date.now): Replays {
  const running = new Map<string, Running>()
  const kept = new Map<string, Kept>()
  let bytes = 0
  const drop = (key: string, entry: Kept) => {
    kept.delete(key)
    bytes -= entry.bytes
  }
  const prune = () => {
    for (const [key, { endsAt }] of running) {
      if (running.size <= runningMax && endsAt > now()) break
      running.delete(key)
    }
    for (const [key, entry] of kept) {
      if (entry.endsAt > now()) break
      drop(key, entry)
    }
    while (kept.size > entriesMax || bytes > bytesMax) drop(...oldestOfLargestPayer(kept))
  }
  const keep = ({ payer, id }: Purchase, run: string, entry: Running, response: OwnResponse) => {
    if (running.get(run) !== entry) return
    running.delete(run)
    const size = response.body?.length ?? 0
    if (size > responseBytesMax) return
    const { fingerprint, endsAt } = entry
    const key = JSON.stringify([payer, id])
    const earlier = kept.get(key)
    if (earlier !== undefined) drop(key, earlier)
    kept.set(key, {
      fingerprint,
      endsAt,
      payer,
      response: replayed(response),
      bytes: entryBytes + size,
    })
    bytes += entryBytes + size
    prune()
  }
  return {
    claim: (purchase) => {
      prune()
      const { payer, id, fingerprint } = purchase
      const known = kept.get(JSON.stringify([payer, id]))
      if (known !== undefined) return repeat(known, fingerprint)
      const run = JSON.stringify([payer, id, fingerprint])
      if (running.has(run)) return { kind: 'duplicate' }
      const entry: Running = { fingerprint, endsAt: now() + ttlMs }
      running.set(run, entry)
      return {
        kind: 'claimed',
        keep: (response) => keep(purchase, run, entry, response),
        free: () => {
          if (running.get(run) === entry) running.delete(run)
        },
      }
    },
  }
}

function oldestOfLargestPayer(kept: ReadonlyMap<string, Kept>): [string, Kept] {
  const totals = new Map<string, number>()
  for (const { payer, bytes } of kept.values()) totals.set(payer, (totals.get(payer) ?? 0) + bytes)
  const most = [...totals.values()].reduce((left, right) => Math.max(left, right), 0)
  const found = [...kept].find(([, { payer }]) => totals.get(payer) === most)
  if (found === undefined) throw new Error('no response is kept')
  return found
}

function repeat({ fingerprint, response }: Kept, repeated: string): Claim {
  return fingerprint === repeated ? { kind: 'replay', response } : { kind: 'conflict' }
}

/** Headers that belong to one connection and are written anew for each. */
export const unkept = /^(?:connection|content-length|date|keep-alive|transfer-encoding)$/i

function replayed({ status, headers, body }: OwnResponse): OwnResponse {
  const kept = Object.entries(headers).filter(([name]) => !unkept.test(name))
  return { status, headers: { ...Object.fromEntries(kept), 'Payment-Replayed': 'true' }, body }
}
