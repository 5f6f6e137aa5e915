import { bytesToHex, type Hex } from '../bytes.ts'
import { type Keccak, keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'

/**
 * Returns the EIP-3009 nonce that an `evm/charge` authorization must have: the Keccak of the challenge's id followed by
 * its realm. It binds the authorization to the challenge, and the token accepts each nonce once. Source:
 * draft-evm-charge-00, "Nonce"; mppx 0.11 `evm/Types.challengeHash`.
 *
 * @example
 * chargeNonce('c1', 'api.example.com') // '0x95eaf9a7dfed5920d0ff403afeba68c4aded493dd7440c596dca20f1173148a1'
 */
export function chargeNonce(challengeId: string, realm: string, keccak: Keccak = keccak256): Hex {
  return bytesToHex(keccak(utf8(challengeId + realm)))
}
