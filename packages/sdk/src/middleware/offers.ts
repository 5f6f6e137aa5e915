import { orderOffers, parseChallenges } from '@purser/protocol'

/** The separator with which Purser joins challenges. */
const boundary = ', Payment '

/** Splits the joined value from Purser into one `WWW-Authenticate` value per challenge, without re-encoding. */
export function splitChallenges(joined: string): string[] {
  const challenges: string[] = []
  let start = 0
  for (let at = joined.indexOf(boundary); at >= 0; at = joined.indexOf(boundary, at + 1)) {
    // A description may contain text that looks like a challenge.
    if (isQuoted(joined, start, at)) continue
    challenges.push(joined.slice(start, at))
    start = at + ', '.length
  }
  return [...challenges, joined.slice(start)]
}

/** Whether the text at `end` is inside a quoted string that began at `start` or later. */
function isQuoted(text: string, start: number, end: number): boolean {
  let isOpen = false
  for (let at = text.indexOf('"', start); at >= 0 && at < end; at = text.indexOf('"', at + 1))
    if (!isOpen || !isEscaped(text, at)) isOpen = !isOpen
  return isOpen
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0
  while (text[at - 1 - backslashes] === '\\') backslashes += 1
  return backslashes % 2 === 1
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
