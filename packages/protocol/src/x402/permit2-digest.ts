import type { Address } from '../address.ts'
import { writeHex, writeUint256 } from '../bytes.ts'
import { typedDataDigest } from '../eip712.ts'
import { type Keccak, keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'
import { type Permit2Scheme, permit2Address } from './permit2.ts'

/**
 * A Permit2 transfer that an x402 proxy may make; amounts in the token's smallest unit, times in Unix seconds. The witness ties it to one
 * receiver, and for `upto` to the one facilitator that may send it.
 */
export type Permit2Transfer = {
  readonly scheme: Permit2Scheme
  readonly spender: Address
  readonly owner: Address
  readonly token: Address
  /** The maximum that may be taken. */
  readonly permitted: bigint
  readonly nonce: bigint
  readonly deadline: bigint
  readonly witness: {
    readonly to: Address
    /** Never undefined for `upto`. */
    readonly facilitator: Address | undefined
    readonly validAfter: bigint
  }
}

const tokenPermissionsType = 'TokenPermissions(address token,uint256 amount)'

/** EIP-712 encodeType of the witness, whose order of fields the deployed proxies fix. */
const witnessTypes = {
  exact: 'Witness(address to,uint256 validAfter)',
  upto: 'Witness(address to,address facilitator,uint256 validAfter)',
} as const satisfies { readonly [scheme in Permit2Scheme]: string }

const typeHashes = {
  domain: hashOf('EIP712Domain(string name,uint256 chainId,address verifyingContract)'),
  name: hashOf('Permit2'),
  tokenPermissions: hashOf(tokenPermissionsType),
  permit: { exact: permitTypeHash('exact'), upto: permitTypeHash('upto') },
  witness: { exact: hashOf(witnessTypes.exact), upto: hashOf(witnessTypes.upto) },
} as const

/**
 * Returns Permit2's EIP-712 domain separator on a chain, 32 bytes. The domain has no version. Source: Uniswap permit2
 * `EIP712.sol`.
 *
 * @example
 * bytesToHex(permit2DomainSeparator(84532)) // '0x010f27a92fb9a32622f44f001dc4d15706a85b33499cfc2ce9033113ab26592c'
 */
export function permit2DomainSeparator(chainId: number, keccak: Keccak = keccak256): Uint8Array {
  const words = new Uint8Array(128)
  words.set(typeHashes.domain, 0)
  words.set(typeHashes.name, 32)
  writeUint256(words, 64, BigInt(chainId))
  writeHex(words, 108, permit2Address)
  return keccak(words)
}

/**
 * Returns the 32-byte digest that the payer signs. Throws a `RangeError` if a field is out of the range of its type, so
 * that no two messages can share a digest by truncation, and for `upto` without a facilitator. Source: Uniswap permit2
 * `PermitHash.hashWithWitness`; @x402/evm 2.27.0 `constants.ts` for the witness types.
 *
 * @example
 * const account = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const transfer = { scheme: 'exact', spender: permit2Proxies.exact, owner: account, token: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', permitted: 10_000n, nonce: 1n, deadline: 1_740_672_154n, witness: { to: account, validAfter: 0n } }
 * bytesToHex(permit2Digest(permit2DomainSeparator(84532), transfer)) // '0x06a4918ad77eb4494644e8b34414bbffa54c824ab15356c0de09335b83126c41'
 */
export function permit2Digest(
  separator: Uint8Array,
  transfer: Permit2Transfer,
  keccak: Keccak = keccak256,
): Uint8Array {
  const permitted = new Uint8Array(96)
  permitted.set(typeHashes.tokenPermissions, 0)
  writeAddress(permitted, 32, transfer.token)
  writeUint256(permitted, 64, transfer.permitted)
  const words = new Uint8Array(192)
  words.set(typeHashes.permit[transfer.scheme], 0)
  words.set(keccak(permitted), 32)
  writeAddress(words, 64, transfer.spender)
  writeUint256(words, 96, transfer.nonce)
  writeUint256(words, 128, transfer.deadline)
  words.set(witnessHash(transfer, keccak), 160)
  return typedDataDigest(separator, keccak(words), keccak)
}

function witnessHash({ scheme, witness }: Permit2Transfer, keccak: Keccak): Uint8Array {
  const words = new Uint8Array(scheme === 'upto' ? 128 : 96)
  words.set(typeHashes.witness[scheme], 0)
  writeAddress(words, 32, witness.to)
  if (scheme === 'upto') {
    if (witness.facilitator === undefined) throw new RangeError('an upto permit must name its facilitator')
    writeAddress(words, 64, witness.facilitator)
  }
  writeUint256(words, words.length - 32, witness.validAfter)
  return keccak(words)
}

function writeAddress(words: Uint8Array, offset: number, address: Address): void {
  if (address.length !== 42) throw new RangeError('not an EVM address: expected 0x and 40 hex digits')
  writeHex(words, offset + 12, address)
}

function permitTypeHash(scheme: Permit2Scheme): Uint8Array {
  return hashOf(
    `PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)${tokenPermissionsType}${witnessTypes[scheme]}`,
  )
}

function hashOf(type: string): Uint8Array {
  return keccak256(utf8(type))
}
