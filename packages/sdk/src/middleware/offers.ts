import { orderOffers, parseChallenges } from '@purser/protocol'

/** Skips quoted strings, because a description may contain text that looks like a challenge. */
const quotedOrBoundary = /"(?:[^"\\]|\\.)*"|,\s*(?=Payment\s)/gi

/** Splits the joined value from Purser into one `WWW-Authenticate` value per challenge, without re-encoding. */
export function splitChallenges(joined: string): string[] {
  const challenges: string[] = []
  let start = 0
  for (const { 0: found, index } of joined.matchAll(quotedOrBoundary)) {
    if (found.startsWith('"')) continue
    challenges.push(joined.slice(start, index))
    start = index + found.length
  }
  return [...challenges, joined.slice(start)]
}

/**
 * The MPP offers for a caller, filtered and ordered by `Accept-Payment`; all of them if none matches (MPP:
 * draft-httpauth-payment-00, the server may ignore the header).
 */
export function offersFor(joined: string | null, acceptPayment: string | undefined): readonly string[] {
  if (joined === null || joined === '') return []
  const values = splitChallenges(joined)
  if (acceptPayment === undefined || values.length < 2) return values
  const offers = values.flatMap((value) =>
    parseChallenges(value).map(({ method, intent }) => ({ method, intent, value })),
  )
  return orderOffers(offers, acceptPayment).map(({ value }) => value)
}
