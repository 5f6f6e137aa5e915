import type { Keccak } from './hash.ts'
import { utf8 } from './utf8.ts'

/** The fields that a payer signs to redeem a payment that was settled but never delivered. */
export interface RedemptionClaim {
  /** `eip3009:<network>:<token>:<payer>:<nonce>` of the authorization that paid, in lower case. */
  readonly payment: string
  /** The HTTP method and the whole URL that were paid for. */
  readonly method: string
  readonly resource: string
  /** ISO 8601 in UTC with milliseconds, such as `2026-11-23T04:00:00.000Z`. */
  readonly signedAt: string
}

/**
 * Returns the text that an account signs (EIP-191) to redeem its payment.
 *
 * @example
 * redemptionMessage({ payment: 'eip3009:…', method: 'GET', resource: 'https://a.example/b', signedAt: '…' }).split('\n')[2] // 'Request: GET https://a.example/b'
 */
export function redemptionMessage({ payment, method, resource, signedAt }: RedemptionClaim): string {
  return `Serve what I paid for.\nPayment: ${payment}\nRequest: ${method} ${resource}\nTime: ${signedAt}`
}

/**
 * Returns the hash that the account signs for this text. Source: EIP-191, version `0x45`.
 *
 * @example
 * const claim = { payment: 'pay_01h455vb4pex5vsknk084sn02q', method: 'GET', resource: 'https://api.example.com/report', signedAt: '2026-01-02T03:04:05Z' }
 * bytesToHex(redemptionHash(keccak256, claim)) // '0x20431b7946566d5097b40afe1edd80fe0b824acb408c3e7cdfe089682d52cab3'
 */
export function redemptionHash(keccak: Keccak, claim: RedemptionClaim): Uint8Array {
  const message = utf8(redemptionMessage(claim))
  const prefix = utf8(`\u0019Ethereum Signed Message:\n${message.length}`)
  const whole = new Uint8Array(prefix.length + message.length)
  whole.set(prefix)
  whole.set(message, prefix.length)
  return keccak(whole)
}
