import type { OwnAnswer } from './answers.ts'
import type { Purchase } from './settle.ts'

/** An answer that did not reach its payer, with all that is needed to settle and serve it later. */
export interface Kept {
  readonly answer: OwnAnswer
  readonly purchase: Purchase
  /** The right to serve the payment that this process had when the payer was gone; it is given back before the next redemption. */
  readonly redemptionToken?: string | undefined
}

/** A kept answer in the hands of one request. It goes back, or it is over. */
export interface TakenAnswer extends Kept {
  readonly putBack: (redemptionToken?: string) => void
  readonly drop: () => void
}

export interface KeptAnswers {
  readonly keep: (key: string, kept: Kept) => void
  /** `busy` while another request has it; undefined where there is none. */
  readonly take: (key: string) => TakenAnswer | 'busy' | undefined
}

interface Bounds {
  readonly bytesMax: number
  readonly msMax: number
  /** Called with an answer that is given up without having been served. */
  readonly onDropped: (kept: Kept) => void
}

interface Entry {
  kept: Kept
  readonly endsAt: number
  readonly bytes: number
  isTaken: boolean
}

/** What an entry costs beside its body and its key. */
const entryBytes = 4_096

/**
 * Answers whose payment may have been settled and which did not leave, by the credential and the request that it came with.
 * Kept in this process alone, for `msMax` and within `bytesMax`; the oldest go first. One that a request is about to serve is
 * never given up: it ends when that request drops it or puts it back.
 */
export function openKeptAnswers({ bytesMax, msMax, onDropped }: Bounds, now: () => number = Date.now): KeptAnswers {
  const entries = new Map<string, Entry>()
  let bytes = 0
  const remove = (key: string, entry: Entry): void => {
    if (entries.get(key) !== entry) return
    entries.delete(key)
    bytes -= entry.bytes
  }
  const prune = (): void => {
    for (const [key, entry] of entries) {
      if (bytes <= bytesMax && entry.endsAt > now()) return
      if (entry.isTaken) continue
      remove(key, entry)
      onDropped(entry.kept)
    }
  }
  return {
    keep: (key, kept) => {
      const known = entries.get(key)
      if (known !== undefined) remove(key, known)
      const size = entryBytes + key.length * 2 + (kept.answer.body?.length ?? 0)
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
