import type { OwnAnswer } from './answers.ts'

/** A purchase with a payment identifier: what must match for a repeat to be answered. */
interface Purchase {
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
  | { readonly kind: 'replay'; readonly answer: OwnAnswer }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'claimed'; readonly keep: (answer: OwnAnswer) => void; readonly free: () => void }

export interface Replays {
  readonly claim: (purchase: Purchase) => Claim
}

interface Entry {
  readonly fingerprint: string
  readonly endsAt: number
  answer: OwnAnswer | undefined
  bytes: number
}

const entriesMax = 1_000
const answerBytesMax = 1_000_000
const bytesMax = 32_000_000
/** The size of an entry without the response body, in bytes. */
const entryBytes = 4_096

/**
 * Keeps responses for payers whose connection broke. Within `ttlMs`, the same credential for the same request gets
 * the same response instead of a refusal, without a call to Purser. Kept in this process, within 1,000 entries and 32
 * MB; the oldest are dropped first. Responses above 1 MB are not kept. This does not decide whether a credential can
 * pay twice: Purser does.
 */
export function openReplays(ttlMs: number, now: () => number = Date.now): Replays {
  const entries = new Map<string, Entry>()
  let bytes = 0
  const drop = (id: string, entry: Entry) => {
    if (entries.get(id) !== entry) return
    entries.delete(id)
    bytes -= entry.bytes
  }
  const makeSpace = () => {
    for (const [id, entry] of entries) {
      if (entries.size <= entriesMax && bytes <= bytesMax && entry.endsAt > now()) return
      drop(id, entry)
    }
  }
  const keep = (id: string, entry: Entry, answer: OwnAnswer) => {
    const size = answer.body?.length ?? 0
    if (entries.get(id) !== entry || size > answerBytesMax) return
    Object.assign(entry, { answer: replayed(answer), bytes: entry.bytes + size })
    bytes += size
    makeSpace()
  }
  return {
    claim: ({ id, fingerprint }) => {
      makeSpace()
      const known = entries.get(id)
      if (known !== undefined) return repeat(known, fingerprint)
      const entry: Entry = { fingerprint, endsAt: now() + ttlMs, answer: undefined, bytes: entryBytes }
      entries.set(id, entry)
      bytes += entryBytes
      makeSpace()
      return { kind: 'claimed', keep: (answer) => keep(id, entry, answer), free: () => drop(id, entry) }
    },
  }
}

function repeat({ fingerprint, answer }: Entry, repeated: string): Claim {
  if (fingerprint !== repeated) return { kind: 'conflict' }
  return answer === undefined ? { kind: 'duplicate' } : { kind: 'replay', answer }
}

/** Headers that belong to one connection and are written anew for each. */
export const unkept = /^(?:connection|content-length|date|keep-alive|transfer-encoding)$/i

function replayed({ status, headers, body }: OwnAnswer): OwnAnswer {
  const kept = Object.entries(headers).filter(([name]) => !unkept.test(name))
  return { status, headers: { ...Object.fromEntries(kept), 'Payment-Replayed': 'true' }, body }
}
