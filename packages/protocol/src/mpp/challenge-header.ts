import type { Trouble } from '../x402/fields.ts'
import { type MppChallenge, readChallenge } from './challenge.ts'
import { endOfElement, endOfQuoted } from './header-list.ts'

/** The maximum length of a value of `WWW-Authenticate`, in characters. A longer one is ignored. */
const valueLengthMax = 65_536
/** The maximum number of challenges in all values together. Further ones are ignored. */
const challengesMax = 64

const namePattern = /[A-Za-z0-9_-]*/y
const spacePattern = /\s*/y
const separatorPattern = /[\s,]*/y

type Reader = { readonly text: string; at: number }
type Draft = { readonly fields: Map<string, string>; broken: boolean }

/**
 * Parses the Payment challenges in the values of `WWW-Authenticate`, in order. A value may contain several challenges,
 * joined by commas, and other schemes. Ignores unknown parameters. Omits a challenge that is malformed, incomplete or
 * names a parameter twice. Never throws. Ignores values above 64 KB and challenges after the 64th. Source: RFC 9110
 * section 11.6.1, draft-httpauth-payment-00; parameter values are accepted as by mppx 0.11.
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * parseChallenges(formatChallenge(challenge))[0].realm // 'api.example.com'
 * parseChallenges('Bearer realm="api"') // []
 */
export function parseChallenges(values: string | readonly string[]): MppChallenge[] {
  const challenges: MppChallenge[] = []
  for (const value of typeof values === 'string' ? [values] : values) {
    if (value.length > valueLengthMax) continue
    for (const draft of readDrafts(value)) {
      const challenge = challenges.length < challengesMax ? finish(draft) : undefined
      if (challenge !== undefined) challenges.push(challenge)
    }
  }
  return challenges
}

function finish(draft: Draft): MppChallenge | undefined {
  if (draft.broken) return undefined
  const trouble: Trouble = { first: undefined }
  const challenge = readChallenge({ object: Object.fromEntries(draft.fields), path: '', trouble })
  return trouble.first === undefined ? challenge : undefined
}

/** Each iteration consumes at least one character, and none is read twice. */
function readDrafts(text: string): Draft[] {
  const reader: Reader = { text, at: 0 }
  const drafts: Draft[] = []
  let draft: Draft | undefined
  let schemeMayStand = true
  for (;;) {
    schemeMayStand = skip(reader, separatorPattern).includes(',') || schemeMayStand
    if (reader.at >= text.length) return drafts
    const name = skip(reader, namePattern)
    skip(reader, spacePattern)
    if (name !== '' && text[reader.at] === '=') addParameter(draft, name, readValue(reader))
    else if (name !== '' && schemeMayStand) draft = startScheme(name, drafts)
    else abandon(reader, draft)
    schemeMayStand = false
  }
}

function startScheme(name: string, drafts: Draft[]): Draft | undefined {
  if (name.toLowerCase() !== 'payment') return undefined
  const draft = { fields: new Map<string, string>(), broken: false }
  if (drafts.length < challengesMax) drafts.push(draft)
  return draft
}

function addParameter(draft: Draft | undefined, name: string, value: string | undefined): void {
  if (draft === undefined) return
  const key = name.toLowerCase()
  if (value === undefined || draft.fields.has(key)) draft.broken = true
  else draft.fields.set(key, value)
}

function abandon(reader: Reader, draft: Draft | undefined): void {
  if (draft !== undefined) draft.broken = true
  reader.at = endOfElement(reader.text, reader.at)
}

/** The value after an `=`: a quoted-string, or the text up to the next comma, as in mppx. */
function readValue(reader: Reader): string | undefined {
  reader.at += 1
  skip(reader, spacePattern)
  const from = reader.at
  if (reader.text[from] !== '"') {
    const comma = reader.text.indexOf(',', from)
    reader.at = comma === -1 ? reader.text.length : comma
    return reader.text.slice(from, reader.at).trim()
  }
  const end = endOfQuoted(reader.text, from + 1)
  reader.at = end + 1
  return end === reader.text.length ? undefined : unescapeQuoted(reader.text.slice(from + 1, end))
}

function unescapeQuoted(raw: string): string {
  if (!raw.includes('\\')) return raw
  return raw.replace(/\\(?:u([0-9A-Fa-f]{4})|([\s\S]))/g, (_, unit: string | undefined, character: string) =>
    unit === undefined ? character : String.fromCharCode(Number.parseInt(unit, 16)),
  )
}

function skip(reader: Reader, sticky: RegExp): string {
  sticky.lastIndex = reader.at
  const skipped = sticky.exec(reader.text)?.[0] ?? ''
  reader.at += skipped.length
  return skipped
}
