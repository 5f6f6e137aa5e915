import { type Address, checksumAddress, sameAddress } from '../address.ts'
import { type Hex, hexToBytes, isHex } from '../bytes.ts'
import { type TransferAuthorization, transferWithAuthorizationDigest } from '../eip712.ts'
import type { TransferSignature } from '../evm-abi.ts'
import type { Keccak } from '../hash.ts'
import { parseSignature, type Recover, recoverAddress } from '../signature.ts'
import { type Expected, whyNotDomain } from './exact-evm.ts'
import type { PaymentPayload, WireAuthorization } from './messages.ts'
import type { Reason } from './reasons.ts'

/** A payment, its requirements, the time, and the cryptographic primitives. */
export type AuthorizationCheck = {
  readonly payload: PaymentPayload
  readonly expected: Expected
  readonly nowSeconds: number
  readonly recover: Recover
  readonly keccak: Keccak
  /** `domainSeparator` of the expected token on the expected network. */
  readonly domainSeparator: Uint8Array
}

/**
 * The extent to which the signature proves the payer's consent. `eoa`: the payer's address was recovered from it, which
 * is final unless the account has code. The other kinds need the chain: `contract` and `eip6492` have these forms;
 * `unproven` has 65 bytes that recover to another address, which only a contract account may accept.
 */
export type SignatureKind = 'eoa' | 'contract' | 'eip6492' | 'unproven'

/** The result of checking a payment without the chain. */
export type AuthorizationVerdict =
  | {
      readonly ok: true
      /** EIP-55 checksummed. */
      readonly payer: Address
      /** Addresses checksummed, nonce in lower case: fit for a unique key. */
      readonly authorization: TransferAuthorization
      readonly signatureKind: SignatureKind
      /** The signature for `encodeTransferWithAuthorization`; for `eip6492` the inner signature. */
      readonly signature: TransferSignature
      /** The call that creates the payer's account, for `eip6492`. */
      readonly deployment: { readonly factory: Address; readonly factoryCalldata: Hex } | undefined
      readonly digest: Uint8Array
    }
  | { readonly ok: false; readonly reason: Reason; readonly payer: Address }

/** Seconds that a payment must still be valid for, so that it reaches a block in time. */
export const settleMarginSeconds = 6

type Proof = {
  readonly signatureKind: SignatureKind
  readonly signature: TransferSignature
  readonly deployment?: { readonly factory: Address; readonly factoryCalldata: Hex }
}

/**
 * Checks everything about an EIP-3009 payment that needs no chain, and returns the first fault in the order of the
 * reference implementation: scheme, domain, network, signature, recipient, validBefore, validAfter, value. In version
 * 2, the accepted offer must match the requirements, because a payer could otherwise pay the price of something else.
 * Both versions require exactly the amount. Only an `ok` of kind `eoa` is proven. Source:
 *
 * @x402/evm 2.27.0 `exact/facilitator/eip3009.ts` and `exact/v1/facilitator/scheme.ts`.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const token = tokenBySymbol(network, 'USDC')
 * const payTo = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const expected = { network, token, rawAmount: 10_000n, payTo }
 * const accepted = requirementsV2({ ...expected, maxTimeoutSeconds: 60 })
 * const authorization = { from: '0x857b06519E91e3A54538791bDbb0E22373e36b66', to: payTo, value: '10000', validAfter: '1740672089', validBefore: '1740672154', nonce: '0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480' }
 * const signature = '0x2d6a7588d6acca505cbf0d9a4a227e0c52c6c34008c8e8986a1283259764173608a2ce6496642e377d6da8dbbf5836e9bd15092f9ecab05ded3d6293af148b571c'
 * const domain = { name: 'USDC', version: '2', chainId: 84532, verifyingContract: token.address }
 * const check = { payload: { x402Version: 2, accepted, payload: { signature, authorization } }, expected, nowSeconds: 1_740_672_100, recover, keccak: keccak256, domainSeparator: domainSeparator(domain) }
 * checkAuthorization(check).payer // '0x857b06519E91e3A54538791bDbb0E22373e36b66'
 * checkAuthorization(check).signatureKind // 'eoa'
 * checkAuthorization({ ...check, nowSeconds: 1_740_672_154 }).reason // 'invalid_exact_evm_payload_authorization_valid_before'
 */
export function checkAuthorization(check: AuthorizationCheck): AuthorizationVerdict {
  const { payload, expected, keccak } = check
  const wire = payload.payload.authorization
  const payer = checksumAddress(wire.from, keccak)
  const mismatch = whyNotOffered(payload, expected)
  if (mismatch !== undefined) return { ok: false, reason: mismatch, payer }

  const authorization = authorizationOf(wire, payer, expected)
  const digest = transferWithAuthorizationDigest(check.domainSeparator, authorization, keccak)
  const proof = proveSignature(check, digest, payer)
  if (proof === undefined) return { ok: false, reason: 'invalid_exact_evm_signature', payer }

  const refusal = whyNotPayable(payload, authorization, check)
  if (refusal !== undefined) return { ok: false, reason: firstReason(proof, refusal), payer }
  return { ok: true, payer, authorization, digest, deployment: undefined, ...proof }
}

/** Returns why the payment does not belong to these requirements. Checked before anything is hashed. */
function whyNotOffered(payload: PaymentPayload, expected: Expected): Reason | undefined {
  const { network, token } = expected
  if (payload.x402Version === 1) {
    if (payload.scheme !== 'exact') return 'invalid_exact_evm_scheme'
    if (payload.network !== network.x402V1Name) return 'invalid_exact_evm_network_mismatch'
    return token.eip3009 ? undefined : 'invalid_exact_evm_eip3009_not_supported'
  }
  const { accepted } = payload
  if (accepted.scheme !== 'exact') return 'invalid_exact_evm_scheme'
  const missing = whyNotDomain(accepted.extra, undefined)
  if (missing !== undefined) return missing
  if (accepted.network !== network.caip2) return 'invalid_exact_evm_network_mismatch'
  if (!sameAddress(accepted.asset, token.address)) return 'invalid_payment_requirements'
  if (expected.maxTimeoutSeconds !== undefined && accepted.maxTimeoutSeconds !== expected.maxTimeoutSeconds) {
    return 'invalid_payment_requirements'
  }
  return whyNotDomain(accepted.extra, token)
}

/** Returns why the signed authorization does not match the requirements. */
function whyNotPayable(
  payload: PaymentPayload,
  authorization: TransferAuthorization,
  { expected, nowSeconds }: AuthorizationCheck,
): Reason | undefined {
  const { payTo, rawAmount } = expected
  const accepted = payload.x402Version === 2 ? payload.accepted : undefined
  if (!sameAddress(authorization.to, payTo)) return 'invalid_exact_evm_recipient_mismatch'
  if (accepted !== undefined && !sameAddress(accepted.payTo, payTo)) return 'invalid_exact_evm_recipient_mismatch'
  const now = BigInt(Math.floor(nowSeconds))
  if (authorization.validBefore < now + BigInt(settleMarginSeconds)) {
    return 'invalid_exact_evm_payload_authorization_valid_before'
  }
  if (authorization.validAfter > now) return 'invalid_exact_evm_payload_authorization_valid_after'
  if (accepted === undefined) {
    return authorization.value === rawAmount ? undefined : 'invalid_exact_evm_authorization_value'
  }
  const pays = authorization.value === rawAmount && accepted.amount === rawAmount.toString()
  return pays ? undefined : 'invalid_exact_evm_payload_authorization_value_mismatch'
}

/**
 * Returns the fault to report. The reference reports a bad signature before other faults, but only the chain can decide
 * about an `unproven` one. The payment is refused in any case, so the chain is not read: such a signature is almost
 * always that of an ordinary account whose payment was altered.
 */
function firstReason(proof: Proof, refusal: Reason): Reason {
  return proof.signatureKind === 'unproven' ? 'invalid_exact_evm_signature' : refusal
}

/** Returns how far the signature proves the payer's consent; `undefined` if no account on any chain could accept it. */
function proveSignature(check: AuthorizationCheck, digest: Uint8Array, payer: Address): Proof | undefined {
  const text = check.payload.payload.signature
  const parsed = parseSignature(text)
  if (typeof parsed === 'string') return undefined
  if (parsed.kind === 'eip6492') {
    const { factory, factoryCalldata, inner } = parsed
    const deployment = { factory: checksumAddress(factory, check.keccak), factoryCalldata }
    return { signatureKind: 'eip6492', signature: { kind: 'bytes', signature: inner }, deployment }
  }
  if (parsed.kind === 'ecdsa') {
    const signer = recoverAddress(check.recover, check.keccak, digest, parsed)
    if (signer === payer.toLowerCase()) return { signatureKind: 'eoa', signature: parsed }
    return isHex(text) ? { signatureKind: 'unproven', signature: { kind: 'bytes', signature: text } } : undefined
  }
  if (parsed.fault === 'high-s' && isMirrored(check, digest, payer)) return undefined
  const signatureKind = parsed.fault === undefined ? 'contract' : 'unproven'
  return { signatureKind, signature: { kind: 'bytes', signature: parsed.signature } }
}

/** Whether a signature with a high s is the payer's signature with s replaced by n - s. No token accepts that. */
function isMirrored(check: AuthorizationCheck, digest: Uint8Array, payer: Address): boolean {
  const bytes = hexToBytes(check.payload.payload.signature)
  const yParity = (bytes[64] ?? 0) % 27 === 0 ? 0 : 1
  const signer = recoverAddress(check.recover, check.keccak, digest, { compact: bytes.slice(0, 64), yParity })
  return signer === payer.toLowerCase()
}

function authorizationOf(wire: WireAuthorization, payer: Address, expected: Expected): TransferAuthorization {
  const nonce = wire.nonce.toLowerCase()
  return {
    from: payer,
    to: sameAddress(wire.to, expected.payTo) ? expected.payTo : wire.to,
    value: BigInt(wire.value),
    validAfter: BigInt(wire.validAfter),
    validBefore: BigInt(wire.validBefore),
    nonce: isHex(nonce) ? nonce : wire.nonce,
  }
}
