import type { OwnAnswer } from './answers.ts'

/** One purchase that the payer gave a name: what must be the same for a repeat of it to be answered. */
export interface Purchase {
  /** The payer's id of the payment (x402 extension `payment-identifier`). */
  readonly id: string
  /** Says which credential came for what: method, address, and body where it is bound. */
  readonly fingerprint: string
}

/**
 * What may be done about a purchase: answer as before, refuse it (it has no answer to keep, or its id is another's), or
 * sell.
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
/** What an entry weighs besides its answer's body. */
const entryBytes = 4_096

/**
 * Answers kept for payers whose connection broke: the same credential for the same request gets the same answer once
 * more, in place of a refusal, for `ttlMs`. Kept in this process alone and within 1,000 entries and 32 MB, the oldest
 * going first; an answer over 1 MB is not kept. Whoever shows the same credential in that time gets the answer, unasked by
 * Purser. Whether a credential buys twice never depends on it: Purser decides.
 */
export function openReplays(ttlMs: number, now: () => number = Date.now): Replays {
  const entries = new Map<string, Entry>()
  let bytes = 0
  const drop = (id: string, entry: Entry) => {
    if (entries.get(id) !== entry) return
    entries.delete(id)
    bytes -= entry.bytes
  }
  const makeRoom = () => {
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
    makeRoom()
  }
  return {
    claim: ({ id, fingerprint }) => {
      makeRoom()
      const known = entries.get(id)
      if (known !== undefined) return repeat(known, fingerprint)
      const entry: Entry = { fingerprint, endsAt: now() + ttlMs, answer: undefined, bytes: entryBytes }
      entries.set(id, entry)
      bytes += entryBytes
      makeRoom()
      return { kind: 'claimed', keep: (answer) => keep(id, entry, answer), free: () => drop(id, entry) }
    },
  }
}

function repeat({ fingerprint, answer }: Entry, repeated: string): Claim {
  if (fingerprint !== repeated) return { kind: 'conflict' }
  return answer === undefined ? { kind: 'duplicate' } : { kind: 'replay', answer }
}

/** These belong to one connection, and are written anew for each. */
export const unkept = /^(?:connection|content-length|date|keep-alive|transfer-encoding)$/i

function replayed({ status, headers, body }: OwnAnswer): OwnAnswer {
  const kept = Object.entries(headers).filter(([name]) => !unkept.test(name))
  return { status, headers: { ...Object.fromEntries(kept), 'Payment-Replayed': 'true' }, body }
}
