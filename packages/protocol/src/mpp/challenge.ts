import { type Cursor, note, optionalText, text } from '../x402/fields.ts'
import { decodeMppJson, mppJsonLengthMax } from './encoding.ts'

/**
 * A challenge of the Payment scheme. `request` and `opaque` are the base64url texts as they were sent, because the id
 * is an HMAC over these texts. `expires` is RFC 3339, `digest` a Content-Digest (RFC 9530) of the request body.
 * `header` is the header field for the credential, if it is not `Authorization`. `description` is for people; the id
 * does not cover it. Source: draft-httpauth-payment-00, "Challenge"; `header` from mpp-specs pull request 328.
 */
export type MppChallenge = {
  readonly id: string
  readonly realm: string
  readonly method: string
  readonly intent: string
  readonly request: string
  readonly expires?: string | undefined
  readonly digest?: string | undefined
  readonly description?: string | undefined
  readonly opaque?: string | undefined
  readonly header?: string | undefined
}

const methodPattern = /^[a-z][a-z0-9:_-]*$/
const headerPattern = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const digestPattern = /^sha-256=/
const plainPattern = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const controlPattern = /[\x00-\x08\x0a-\x1f\x7f]/
const beyondLatin1 = /[\u0100-\uffff]/g

/** The form of `expires` and of a receipt's `timestamp`, as mppx reads it: RFC 3339 with a capital T and Z. */
export const mppTimePattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

/**
 * Returns the text of which a challenge's id is the HMAC: realm, method, intent, request, expires, digest and opaque,
 * joined by `|`, the absent ones empty. A `header` other than `Authorization` is an eighth slot before `opaque`, which
 * the draft does not have but mppx 0.11 does. Danger: a `|` inside a slot could move text from one slot to the next;
 * `parseMppCredential` refuses it, and the issuer of challenges must not put one into the realm. Source:
 * draft-httpauth-payment-00, "Challenge ID binding"; mppx 0.11 `Challenge.idBindingInput`.
 *
 * @example
 * challengeBinding({ realm: 'api.example.com', method: 'evm', intent: 'charge', request: 'e30' }) // 'api.example.com|evm|charge|e30|||'
 */
export function challengeBinding(challenge: Omit<MppChallenge, 'id'>): string {
  const { realm, method, intent, request, expires = '', digest = '', opaque = '' } = challenge
  const header = ownHeader(challenge.header)
  const last = header === undefined ? opaque : `${header}|${opaque}`
  return `${realm}|${method}|${intent}|${request}|${expires}|${digest}|${last}`
}

/**
 * Formats a challenge as a value of `WWW-Authenticate`. Characters above Latin-1 become `\uXXXX`, which is mppx's own
 * extension and keeps the value a legal header. Throws a `RangeError` for a control character: it could end the header
 * and begin another.
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * formatChallenge(challenge).startsWith('Payment id="c1", realm="api.example.com"') // true
 */
export function formatChallenge(challenge: MppChallenge): string {
  const { id, realm, method, intent, request, description, digest, expires, opaque } = challenge
  let value = `Payment id=${quoted(id)}, realm=${quoted(realm)}, method=${quoted(method)}, intent=${quoted(intent)}`
  value += `, request=${quoted(request)}`
  if (description) value += `, description=${quoted(description)}`
  if (digest) value += `, digest=${quoted(digest)}`
  if (expires) value += `, expires=${quoted(expires)}`
  const header = ownHeader(challenge.header)
  if (header !== undefined) value += `, header=${quoted(header)}`
  return opaque ? `${value}, opaque=${quoted(opaque)}` : value
}

/**
 * Formats several challenges as one value of `WWW-Authenticate` (RFC 9110 section 11.6.1).
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * parseChallenges(formatChallenges([challenge, { ...challenge, id: 'c2' }])).length // 2
 */
export function formatChallenges(challenges: readonly MppChallenge[]): string {
  return challenges.map(formatChallenge).join(', ')
}

/**
 * Reads a challenge from the members of a message. The first fault is noted in the cursor's `trouble`. As in mppx, an
 * empty optional member counts as absent, and so does a `header` of `Authorization`.
 */
export function readChallenge(cursor: Cursor): MppChallenge {
  const challenge = {
    id: text(cursor, 'id', 512),
    realm: text(cursor, 'realm', 1_024),
    method: text(cursor, 'method', 64),
    intent: text(cursor, 'intent', 64),
    request: text(cursor, 'request', mppJsonLengthMax),
    expires: optional(cursor, 'expires', 64),
    digest: optional(cursor, 'digest', 512),
    description: optional(cursor, 'description', mppJsonLengthMax),
    opaque: optional(cursor, 'opaque', mppJsonLengthMax),
    header: ownHeader(optional(cursor, 'header', 128)),
  }
  noteForms(cursor, challenge)
  return challenge
}

function noteForms(cursor: Cursor, challenge: MppChallenge): void {
  const { method, expires, digest, header, request } = challenge
  const wrong = (name: string, message: string) => note(cursor.trouble, `${cursor.path}/${name}`, message)
  if (!methodPattern.test(method)) wrong('method', 'must be lower case and begin with a letter')
  if (expires !== undefined && !mppTimePattern.test(expires)) wrong('expires', 'must be an RFC 3339 time')
  if (digest !== undefined && !digestPattern.test(digest)) wrong('digest', 'must be a sha-256 digest')
  if (header !== undefined && !headerPattern.test(header)) wrong('header', 'must be the name of a header')
  if (cursor.trouble.first === undefined && decodeMppJson(request) === undefined)
    wrong('request', 'must be base64url of a JSON object, at most 16 KB')
}

function optional(cursor: Cursor, name: string, lengthMax: number): string | undefined {
  const value = optionalText(cursor, name, lengthMax)
  return value === '' ? undefined : value
}

function ownHeader(header: string | undefined): string | undefined {
  return !header || header.toLowerCase() === 'authorization' ? undefined : header
}

/** A quoted-string (RFC 9110 section 5.6.4). */
function quoted(value: string): string {
  if (plainPattern.test(value)) return `"${value}"`
  if (controlPattern.test(value)) throw new RangeError('a challenge cannot hold control characters')
  const escaped = value.replace(/[\\"]/g, '\\$&')
  return `"${escaped.replace(beyondLatin1, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`
}
