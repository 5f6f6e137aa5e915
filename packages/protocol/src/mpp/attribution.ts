import { bytesToHex, type Hex } from '../bytes.ts'
import { keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'

const versionDigits = '01'
const anonymousDigits = '0'.repeat(20)
const tagDigits = fingerprint('mpp', 4)

/**
 * Returns the memo of a Tempo payment, 32 bytes. It binds the public transfer to one challenge, so that nobody can use
 * the transfer to pay another. The parts are a tag (4 bytes), the version 1 (1 byte), and the first bytes of the Keccak
 * of the realm (10 bytes), of the client (10 bytes, zeros without one) and of the challenge id (7 bytes). Source: mppx
 * 0.11 `tempo/Attribution`.
 *
 * @example
 * attributionMemo({ realm: 'api.example.com', challengeId: 'c1' }) // '0xef1ed712011ece072f76bd8b82350e000000000000000000007c1b16802b3047'
 */
export function attributionMemo(of: {
  readonly realm: string
  readonly challengeId: string
  readonly clientId?: string | undefined
}): Hex {
  const client = of.clientId ? fingerprint(of.clientId, 10) : anonymousDigits
  return `0x${tagDigits}${versionDigits}${fingerprint(of.realm, 10)}${client}${fingerprint(of.challengeId, 7)}`
}

/**
 * Whether a memo is bound to this challenge id and realm. The client may be any. Letter case does not matter.
 *
 * @example
 * isMemoBound(attributionMemo({ realm: 'api.example.com', challengeId: 'c1' }), { realm: 'api.example.com', challengeId: 'c1' }) // true
 */
export function isMemoBound(memo: Hex, to: { readonly realm: string; readonly challengeId: string }): boolean {
  const own = attributionMemo(to)
  const lower = memo.toLowerCase()
  const client = lower.slice(32, 52)
  return /^[0-9a-f]{20}$/.test(client) && lower === `${own.slice(0, 32)}${client}${own.slice(52)}`
}

function fingerprint(text: string, size: number): string {
  return bytesToHex(keccak256(utf8(text)).subarray(0, size)).slice(2)
}
