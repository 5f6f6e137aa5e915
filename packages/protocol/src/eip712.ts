import type { Address } from './address.ts'
import { type Hex, writeHex, writeUint256 } from './bytes.ts'
import { type Keccak, keccak256 } from './hash.ts'
import { utf8 } from './utf8.ts'

/** The EIP-712 domain of a token. It limits a signature to this token on this chain. */
export type Eip712Domain = {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: Address
}

/** The message of EIP-3009. `value` is in the token's smallest unit, times are Unix seconds, `nonce` has 32 bytes. */
export type TransferAuthorization = {
  readonly from: Address
  readonly to: Address
  readonly value: bigint
  readonly validAfter: bigint
  readonly validBefore: bigint
  readonly nonce: Hex
}

/** EIP-712 encodeType of the message of EIP-3009. */
export const transferWithAuthorizationType =
  'TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)'

const domainTypeHash = keccak256(
  utf8('EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'),
)
const transferTypeHash = keccak256(utf8(transferWithAuthorizationType))

/**
 * Returns a token's EIP-712 domain separator, 32 bytes. It is constant per token, so compute it once. A wrong name,
 * version or chain gives another separator, with which every valid signature recovers to a wrong address. Source:
 * EIP-712, "Definition of domainSeparator".
 *
 * @example
 * bytesToHex(domainSeparator({ name: 'USDC', version: '2', chainId: 84532, verifyingContract: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' })) // '0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818'
 */
export function domainSeparator(domain: Eip712Domain, keccak: Keccak = keccak256): Uint8Array {
  const words = new Uint8Array(160)
  words.set(domainTypeHash, 0)
  words.set(keccak(utf8(domain.name)), 32)
  words.set(keccak(utf8(domain.version)), 64)
  writeUint256(words, 96, BigInt(domain.chainId))
  writeHex(words, 140, domain.verifyingContract)
  return keccak(words)
}

/**
 * Returns the 32-byte digest that the payer of a `transferWithAuthorization` signs. Throws a `RangeError` if a field is
 * out of the range of its type, so that no two messages can share a digest by truncation. Source: EIP-712 "encode" and
 * EIP-3009 "Typed data".
 *
 * @example
 * const token = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 * const separator = domainSeparator({ name: 'USDC', version: '2', chainId: 84532, verifyingContract: token })
 * const [from, to] = ['0x857b06519E91e3A54538791bDbb0E22373e36b66', '0x209693Bc6afc0C5328bA36FaF03C514EF312287C']
 * const authorization = { from, to, value: 10_000n, validAfter: 0n, validBefore: 1_740_672_154n, nonce: '0x' + '11'.repeat(32) }
 * bytesToHex(transferWithAuthorizationDigest(separator, authorization)) // '0xc8ede61e0ef12f0ae5c66a3682e1599ab8a11cce523c60fcfbcadc1f9c78d249'
 */
export function transferWithAuthorizationDigest(
  separator: Uint8Array,
  authorization: TransferAuthorization,
  keccak: Keccak = keccak256,
): Uint8Array {
  const { from, to, nonce } = authorization
  if (from.length !== 42 || to.length !== 42) throw new RangeError('not an EVM address: expected 0x and 40 hex digits')
  if (nonce.length !== 66) throw new RangeError('the nonce must have 32 bytes')
  const words = new Uint8Array(224)
  words.set(transferTypeHash, 0)
  writeHex(words, 44, from)
  writeHex(words, 76, to)
  writeUint256(words, 96, authorization.value)
  writeUint256(words, 128, authorization.validAfter)
  writeUint256(words, 160, authorization.validBefore)
  writeHex(words, 192, nonce)
  return typedDataDigest(separator, keccak(words), keccak)
}

/**
 * Returns the EIP-712 digest: Keccak of `0x1901`, the domain separator and the hash of the message (EIP-712 "encode").
 *
 * @example
 * bytesToHex(typedDataDigest(new Uint8Array(32), new Uint8Array(32))) // '0x0b15111afa5c2b936d8dd23e1ffc4a97dd7a9af57a8144231ff70b749ab128d0'
 */
export function typedDataDigest(separator: Uint8Array, structHash: Uint8Array, keccak: Keccak = keccak256): Uint8Array {
  if (separator.length !== 32 || structHash.length !== 32) throw new RangeError('the hashes must have 32 bytes')
  const message = new Uint8Array(66)
  message[0] = 0x19
  message[1] = 0x01
  message.set(separator, 2)
  message.set(structHash, 34)
  return keccak(message)
}
