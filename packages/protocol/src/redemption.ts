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

/** Returns the hash that the account signs for this text. Source: EIP-191, version `0x45`. */
export function redemptionHash(keccak: Keccak, claim: RedemptionClaim): Uint8Array {
  const message = utf8(redemptionMessage(claim))
  const prefix = utf8(`\u0019Ethereum Signed Message:\n${message.length}`)
  const whole = new Uint8Array(prefix.length + message.length)
  whole.set(prefix)
  whole.set(message, prefix.length)
  return keccak(whole)
}
