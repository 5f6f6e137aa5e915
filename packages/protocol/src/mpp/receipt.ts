import { encodeBase64Url } from '../base64.ts'
import { utf8 } from '../utf8.ts'
import { type Cursor, note, optionalText, type Trouble, text } from '../x402/fields.ts'
import { mppTimePattern } from './challenge.ts'
import { decodeMppJson } from './encoding.ts'

/**
 * What `Payment-Receipt` says of a payment that succeeded; there is no receipt for any other. `reference` is the method's own
 * name for it (a transaction hash), `timestamp` RFC 3339. `challengeId` and `chainId` are the evm draft's and left out by mppx.
 * Source: draft-httpauth-payment-00, "Payment-Receipt"; draft-evm-charge-00, "Receipt".
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
 * The value of `Payment-Receipt`. It goes to the payer, so only a receipt's members are written, whatever else the object holds.
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
 * Reads a `Payment-Receipt` of at most 16 KiB; `undefined` when it is not one. Members that are not a receipt's are dropped.
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
