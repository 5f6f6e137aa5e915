import type { Address } from '../address.ts'
import { writeHex, writeUint256 } from '../bytes.ts'
import { typedDataDigest } from '../eip712.ts'
import { type Keccak, keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'

/** The content of a zero-amount proof: the account, and the challenge with its realm. */
export type ProofSubject = {
  readonly chainId: number
  readonly account: Address
  readonly challengeId: string
  readonly realm: string
}

const domainTypeHash = keccak256(utf8('EIP712Domain(string name,string version,uint256 chainId)'))
const proofTypeHash = keccak256(utf8('Proof(address account,string challengeId,string realm)'))
const nameHash = keccak256(utf8('MPP'))
const versionHash = keccak256(utf8('3'))

/**
 * Returns the typed data of a zero-amount proof, in the form of viem's `signTypedData`. It has version 3 of mppx 0.11,
 * which contains the account and the realm. The draft still has version 1, which contains the challenge's id only.
 * Source: mppx 0.11 `tempo/Proof`; draft-tempo-charge-00, "Proof".
 *
 * @example
 * proofTypedData({ chainId: 42431, account: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', challengeId: 'c1', realm: 'api.example.com' }).primaryType // 'Proof'
 */
export function proofTypedData({ chainId, account, challengeId, realm }: ProofSubject) {
  return {
    domain: { name: 'MPP', version: '3', chainId },
    types: {
      Proof: [
        { name: 'account', type: 'address' },
        { name: 'challengeId', type: 'string' },
        { name: 'realm', type: 'string' },
      ],
    },
    primaryType: 'Proof',
    message: { account, challengeId, realm },
  } as const
}

/**
 * Returns the 32-byte digest that the payer of a zero-amount proof signs (EIP-712). Throws a `RangeError` if the
 * account is not an address.
 *
 * @example
 * proofDigest({ chainId: 42431, account: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', challengeId: 'c1', realm: 'api.example.com' }).length // 32
 */
export function proofDigest(subject: ProofSubject, keccak: Keccak = keccak256): Uint8Array {
  if (subject.account.length !== 42) throw new RangeError('not an EVM address: expected 0x and 40 hex digits')
  const domain = new Uint8Array(128)
  domain.set(domainTypeHash, 0)
  domain.set(nameHash, 32)
  domain.set(versionHash, 64)
  writeUint256(domain, 96, BigInt(subject.chainId))
  const message = new Uint8Array(128)
  message.set(proofTypeHash, 0)
  writeHex(message, 44, subject.account)
  message.set(keccak(utf8(subject.challengeId)), 64)
  message.set(keccak(utf8(subject.realm)), 96)
  return typedDataDigest(keccak(domain), keccak(message), keccak)
}
