import type { Address } from '../address.ts'
import { encodeBase64Url } from '../base64.ts'
import { type Hex, isHex } from '../bytes.ts'
import { signatureBytesMax } from '../signature.ts'
import { utf8 } from '../utf8.ts'
import {
  address,
  bytes32,
  type Cursor,
  enter,
  isObject,
  note,
  optionalObject,
  optionalText,
  rawAmount,
  type Trouble,
} from '../x402/fields.ts'
import type { JsonObject } from '../x402/messages.ts'
import { type MppChallenge, readChallenge } from './challenge.ts'
import { decodeJsonObject, encodeMppJson, mppJsonLengthMax } from './encoding.ts'
import { elementsOf } from './header-list.ts'
import type { MppParsed, MppProblem } from './problems.ts'

/** A payer's credential: the challenge unchanged, the proof of payment that its method requires, and the payer (a DID). */
export type MppCredential = {
  readonly challenge: MppChallenge
  readonly payload: JsonObject
  readonly source?: string | undefined
}

/** The payload of `evm/charge`: an EIP-3009 authorization, integers as decimal digits below 2^256. */
export type EvmAuthorizationPayload = {
  readonly type: 'authorization'
  readonly from: Address
  readonly to: Address
  readonly value: string
  readonly validAfter: string
  readonly validBefore: string
  readonly nonce: Hex
  readonly signature: Hex
}

/** The payload of `tempo/charge`: a signed transaction (pull), the hash of one that was sent (push), or a zero-amount proof. */
export type TempoPayload =
  | { readonly type: 'transaction'; readonly signature: Hex }
  | { readonly type: 'hash'; readonly hash: Hex }
  | { readonly type: 'proof'; readonly signature: Hex }

/** The maximum length of a credential, in characters. The draft requires servers to accept 4 KB. */
export const mppCredentialLengthMax = 32_768

const paymentScheme = /^payment\s+/i
const noBytes: Hex = '0x'

/**
 * Formats a credential as the value of its header, including the scheme (draft-httpauth-payment-00, "Credentials").
 *
 * @example
 * const request = { amount: '10000', currency: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', recipient: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C' }
 * const challenge = { id: 'c1', realm: 'api.example.com', method: 'evm', intent: 'charge', request: encodeMppJson(request) }
 * parseMppCredential(formatMppCredential({ challenge, payload: { type: 'hash', hash: '0x01' } })).ok // true
 */
export function formatMppCredential(credential: MppCredential): string {
  const { challenge, payload, source } = credential
  const { id, realm, method, intent, request, expires, digest, description, opaque, header } = challenge
  const echoed = { id, realm, method, intent, request, expires, digest, description, opaque, header }
  return `Payment ${encodeBase64Url(utf8(JSON.stringify({ challenge: echoed, payload, source })))}`
}

/**
 * Parses a credential from a header's raw value, with or without the scheme. Other schemes in the value are ignored.
 * Two credentials in one value are `bad-request`, because two readers could choose different ones. An `opaque` that is
 * an object, as in old versions of mppx, is converted to its text. The challenge's members must not contain `|`, so
 * that two challenges never have the same `challengeBinding`. Does not verify the challenge's id.
 *
 * @example
 * parseMppCredential('Bearer abc').ok // false
 */
export function parseMppCredential(headerValue: string): MppParsed<MppCredential> {
  if (headerValue.length > mppCredentialLengthMax) return fail('malformed-credential', '', 'must be at most 32 KB')
  const tokens = tokensOf(headerValue)
  if (tokens.length > 1) return fail('bad-request', '', 'must be one credential, not several')
  const object = tokens[0] === undefined ? undefined : decodeJsonObject(tokens[0])
  if (object === undefined) return fail('malformed-credential', '', 'must be base64url of a JSON object')
  const trouble: Trouble = { first: undefined }
  const cursor: Cursor = { object, path: '', trouble }
  const credential = {
    challenge: readEchoed(cursor),
    payload: readPayload(cursor),
    source: optionalText(cursor, 'source', 1_024) || undefined,
  }
  return answer(trouble, credential, 'malformed-credential')
}

/**
 * Returns the credentials of the Payment scheme in a header's value, each with its scheme. Other schemes and a text without a scheme are none. Its time is
 * proportional to the length of the value, which a stranger chooses. Source: RFC 9110 sections 5.6.1 and 11.4.
 *
 * @example
 * mppCredentialsIn('Bearer abc, Payment e30') // ['Payment e30']
 * mppCredentialsIn('Bearer abc') // []
 */
export function mppCredentialsIn(headerValue: string): string[] {
  return elementsOf(headerValue).filter((element) => paymentScheme.test(element))
}

/**
 * Reads the payload of `evm/charge`. Stricter than mppx 0.11: integers have no leading zeros and fit in 256 bits, and a
 * signature consists of whole bytes. Source: draft-evm-charge-00, "Authorization payload".
 *
 * @example
 * parseEvmPayload({ type: 'hash' }).ok // false
 */
export function parseEvmPayload(payload: JsonObject): MppParsed<EvmAuthorizationPayload> {
  if (payload.type !== 'authorization') return fail('invalid-payload', '/type', 'must be authorization')
  const trouble: Trouble = { first: undefined }
  const cursor: Cursor = { object: payload, path: '', trouble }
  const value: EvmAuthorizationPayload = {
    type: 'authorization',
    from: address(cursor, 'from'),
    to: address(cursor, 'to'),
    value: rawAmount(cursor, 'value'),
    validAfter: rawAmount(cursor, 'validAfter'),
    validBefore: rawAmount(cursor, 'validBefore'),
    nonce: bytes32(cursor, 'nonce'),
    signature: hexBytes(cursor, 'signature', signatureBytesMax),
  }
  return answer(trouble, value, 'invalid-payload')
}

/**
 * Reads the payload of `tempo/charge`. Source: draft-tempo-charge-00, "Credential payload"; mppx 0.11 `tempo/Methods`.
 *
 * @example
 * parseTempoPayload({ type: 'hash', hash: '0x' + 'ab'.repeat(32) }).ok // true
 * parseTempoPayload({ type: 'none' }).ok // false
 */
export function parseTempoPayload(payload: JsonObject): MppParsed<TempoPayload> {
  const { type } = payload
  const trouble: Trouble = { first: undefined }
  const cursor: Cursor = { object: payload, path: '', trouble }
  if (type === 'hash') return answer(trouble, { type, hash: bytes32(cursor, 'hash') }, 'invalid-payload')
  if (type !== 'transaction' && type !== 'proof')
    return fail('invalid-payload', '/type', 'must be transaction, hash or proof')
  const bytesMax = type === 'proof' ? signatureBytesMax : mppCredentialLengthMax / 2
  return answer(trouble, { type, signature: hexBytes(cursor, 'signature', bytesMax) }, 'invalid-payload')
}

/** Returns the credentials in a value, without their scheme. A value without any scheme is itself a credential. */
function tokensOf(headerValue: string): string[] {
  const payments = mppCredentialsIn(headerValue)
  if (payments.length > 0) return payments.map((element) => element.replace(paymentScheme, ''))
  const elements = elementsOf(headerValue)
  return elements.length === 1 ? elements : []
}

function readEchoed(cursor: Cursor): MppChallenge {
  const { object, path, trouble } = enter(cursor.object.challenge, '/challenge', cursor.trouble)
  const opaque = isObject(object.opaque) ? opaqueOfObject(object.opaque) : object.opaque
  const challenge = readChallenge({ object: { ...object, opaque }, path, trouble })
  for (const name of ['realm', 'intent', 'digest', 'opaque', 'header'] as const)
    if (challenge[name]?.includes('|')) note(trouble, `${path}/${name}`, 'must not hold a vertical bar')
  return challenge
}

/**
 * Returns the base64url text of an `opaque` that was sent as an object of texts. For any other object returns a number,
 * which `readChallenge` refuses.
 */
function opaqueOfObject(value: JsonObject): string | number {
  const texts = Object.entries(value).flat()
  const tame = texts.every((part) => typeof part === 'string' && part.isWellFormed())
  return tame && texts.join('').length <= mppJsonLengthMax ? encodeMppJson(value) : 0
}

function readPayload(cursor: Cursor): JsonObject {
  const payload = optionalObject(cursor, 'payload')
  if (payload === undefined) note(cursor.trouble, '/payload', 'must be an object')
  return payload ?? {}
}

function hexBytes(cursor: Cursor, name: string, bytesMax: number): Hex {
  const value = cursor.object[name]
  if (typeof value === 'string' && value.length > 2 && value.length <= 2 + bytesMax * 2 && isHex(value)) return value
  note(cursor.trouble, `${cursor.path}/${name}`, `must be 0x and the hex digits of 1 to ${bytesMax} bytes`)
  return noBytes
}

function fail<T>(reason: MppProblem, path: string, message: string): MppParsed<T> {
  return { ok: false, fault: { reason, path, message } }
}

function answer<T>(trouble: Trouble, value: T, reason: MppProblem): MppParsed<T> {
  return trouble.first === undefined ? { ok: true, value } : { ok: false, fault: { reason, ...trouble.first } }
}
