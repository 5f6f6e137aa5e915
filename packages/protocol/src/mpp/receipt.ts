import { encodeBase64Url } from '../base64.ts'
import { utf8 } from '../utf8.ts'
import { type Cursor, note, optionalText, type Trouble, text } from '../x402/fields.ts'
import { mppTimePattern } from './challenge.ts'
import { decodeMppJson } from './encoding.ts'

/**
 * The content of `Payment-Receipt`, which only a successful payment has. `reference` identifies the payment in its
 * method, such as a transaction hash; `timestamp` is RFC 3339. `challengeId` and `chainId` are members of the evm draft
 * that mppx omits. Source: draft-httpauth-payment-00, "Payment-Receipt"; draft-evm-charge-00, "Receipt".
 */
export type MppReceipt = {
  readonly status: 'success'
  readonly method: string
  readonly timestamp: string
  readonly reference: string
  readonly challengeId?: string | undefined
  readonly chainId?: number | undefined
  readonly externalId?: string | undefined
}

/**
 * Formats the value of `Payment-Receipt`. It is sent to the payer, so it contains the members of a receipt only,
 * whatever else the object has.
 *
 * @example
 * const receipt = { status: 'success', method: 'evm', timestamp: '2026-11-26T12:00:00Z', reference: '0x01' }
 * parseReceipt(formatReceipt(receipt))?.reference // '0x01'
 */
export function formatReceipt(receipt: MppReceipt): string {
  const { status, method, timestamp, reference, challengeId, chainId, externalId } = receipt
  const json = JSON.stringify({ status, method, timestamp, reference, challengeId, chainId, externalId })
  return encodeBase64Url(utf8(json))
}

/**
 * Parses a `Payment-Receipt` of at most 16 KiB. Returns `undefined` if it is malformed. Unknown members are dropped.
 *
 * @example
 * parseReceipt('not a receipt') // undefined
 */
export function parseReceipt(value: string): MppReceipt | undefined {
  const object = decodeMppJson(value)
  if (object === undefined || object.status !== 'success') return undefined
  const trouble: Trouble = { first: undefined }
  const cursor: Cursor = { object, path: '', trouble }
  const receipt: MppReceipt = {
    status: 'success',
    method: text(cursor, 'method', 64),
    timestamp: text(cursor, 'timestamp', 64),
    reference: text(cursor, 'reference', 1_024, 0),
    challengeId: optionalText(cursor, 'challengeId', 512),
    chainId: chainIdOf(cursor),
    externalId: optionalText(cursor, 'externalId', 1_024),
  }
  return trouble.first === undefined && mppTimePattern.test(receipt.timestamp) ? receipt : undefined
}

function chainIdOf({ object, trouble }: Cursor): number | undefined {
  const value = object.chainId
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  if (value !== undefined && value !== null) note(trouble, '/chainId', 'must be a positive integer')
  return undefined
}
