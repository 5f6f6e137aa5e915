import { type Address, checksumAddress, sameAddress } from '../address.ts'
import { bytesToHex, concatBytes, type Hex } from '../bytes.ts'
import type { Keccak } from '../hash.ts'
import { parseSignature, type Recover, recoverAddress } from '../signature.ts'
import { settleMarginSeconds } from './check-authorization.ts'
import type { Expected } from './exact-evm.ts'
import { type Permit2Payment, type Permit2Scheme, permit2Proxies } from './permit2.ts'
import { type Permit2Transfer, permit2Digest } from './permit2-digest.ts'
import { type Permit2612, readPermit2612 } from './permit2-eip2612.ts'
import type { Reason } from './reasons.ts'

/** A Permit2 payment, its requirements, the time, and the cryptographic primitives. */
export type Permit2Check = {
  readonly payment: Permit2Payment
  readonly scheme: Permit2Scheme
  /** For `upto` its amount is the maximum that may be taken. */
  readonly expected: Expected
  /** The account that settles: the only one that an `upto` permit may name. */
  readonly facilitator: Address
  readonly nowSeconds: number
  readonly recover: Recover
  readonly keccak: Keccak
  /** `permit2DomainSeparator` of the expected network. */
  readonly domainSeparator: Uint8Array
}

/** The result of checking a Permit2 payment without the chain. */
export type Permit2Verdict =
  | {
      readonly ok: true
      /** EIP-55 checksummed. */
      readonly payer: Address
      readonly transfer: Permit2Transfer
      /** The signature for the proxy. That of an ordinary account has a v of 27 or 28, as Permit2 requires. */
      readonly signature: Hex
      /** Whether the payer's own key signed. If the account has code, only that code can decide. */
      readonly isProven: boolean
      readonly digest: Uint8Array
      readonly permit2612: Permit2612 | undefined
    }
  | { readonly ok: false; readonly reason: Reason; readonly payer: Address }

/**
 * Checks everything about a Permit2 payment that needs no chain, and returns the first fault in the order of the
 * reference implementation: scheme, network, spender, recipient, facilitator, deadline, validAfter, amount, token,
 * signature, EIP-2612 permit. A verdict `ok` with `isProven: false` still needs a check by the payer's contract.
 * Source:
 * @x402/evm 2.27.0 `exact/facilitator/permit2.ts` and `upto/facilitator/permit2.ts`.
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const token = tokenBySymbol(network, 'USDC')
 * const payTo = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const expected = { network, token, rawAmount: 10_000n, payTo }
 * const accepted = { ...requirementsV2({ ...expected, maxTimeoutSeconds: 60 }), extra: { assetTransferMethod: 'permit2' } }
 * const permit2Authorization = { from: '0x857b06519E91e3A54538791bDbb0E22373e36b66', permitted: { token: token.address, amount: '10000' }, spender: permit2Proxies.exact, nonce: '1', deadline: '1740672154', witness: { to: payTo, validAfter: '0' } }
 * const payment = { x402Version: 2, accepted, payload: { signature: '0x', permit2Authorization } }
 * const check = { payment, scheme: 'exact', expected, facilitator: payTo, nowSeconds: 1_740_672_100, recover, keccak: keccak256, domainSeparator: permit2DomainSeparator(84532) }
 * checkPermit2(check).isProven // false
 * checkPermit2({ ...check, nowSeconds: 1_740_672_154 }).reason // 'permit2_deadline_expired'
 */
export function checkPermit2(check: Permit2Check): Permit2Verdict {
  const { payment, keccak } = check
  const wire = payment.payload.permit2Authorization
  const payer = checksumAddress(wire.from, keccak)
  const refusal = whyNotOffered(check) ?? whyNotPayable(check)
  if (refusal !== undefined) return { ok: false, reason: refusal, payer }

  const transfer = transferOf(check, payer)
  const digest = permit2Digest(check.domainSeparator, transfer, keccak)
  const proof = proveSignature(check, digest, payer)
  if (proof === undefined) return { ok: false, reason: 'invalid_permit2_signature', payer }

  const permit2612 = readPermit2612(payment.extensions, wire, payableUntil(check))
  if (typeof permit2612 === 'string') return { ok: false, reason: permit2612, payer }
  return { ok: true, payer, transfer, digest, permit2612, ...proof }
}

function whyNotOffered({ payment, scheme, expected }: Permit2Check): Reason | undefined {
  const isUpto = scheme === 'upto'
  if (payment.accepted.scheme !== scheme) return isUpto ? 'invalid_upto_evm_scheme' : 'unsupported_payload_type'
  if (payment.accepted.network === expected.network.caip2) return undefined
  return isUpto ? 'invalid_upto_evm_network_mismatch' : 'invalid_exact_evm_network_mismatch'
}

/** Returns why the signed permit does not match the requirements. */
function whyNotPayable(check: Permit2Check): Reason | undefined {
  const { payment, scheme, expected, facilitator } = check
  const { permitted, spender, deadline, witness } = payment.payload.permit2Authorization
  if (!sameAddress(spender, permit2Proxies[scheme])) return 'invalid_permit2_spender'
  if (!sameAddress(witness.to, expected.payTo)) return 'invalid_permit2_recipient_mismatch'
  if (scheme === 'upto' && (witness.facilitator === undefined || !sameAddress(witness.facilitator, facilitator)))
    return 'upto_facilitator_mismatch'
  if (BigInt(deadline) < payableUntil(check)) return 'permit2_deadline_expired'
  if (BigInt(witness.validAfter) > now(check)) return 'permit2_not_yet_valid'
  if (BigInt(permitted.amount) !== expected.rawAmount) return 'permit2_amount_mismatch'
  return sameAddress(permitted.token, expected.token.address) ? undefined : 'permit2_token_mismatch'
}

function now({ nowSeconds }: Permit2Check): bigint {
  return BigInt(Math.floor(nowSeconds))
}

function payableUntil(check: Permit2Check): bigint {
  return now(check) + BigInt(settleMarginSeconds)
}

function transferOf({ payment, scheme, expected, facilitator }: Permit2Check, payer: Address): Permit2Transfer {
  const { permitted, nonce, deadline, witness } = payment.payload.permit2Authorization
  return {
    scheme,
    spender: permit2Proxies[scheme],
    owner: payer,
    token: expected.token.address,
    permitted: BigInt(permitted.amount),
    nonce: BigInt(nonce),
    deadline: BigInt(deadline),
    witness: {
      to: expected.payTo,
      facilitator: scheme === 'upto' ? facilitator : undefined,
      validAfter: BigInt(witness.validAfter),
    },
  }
}

/**
 * Returns whether the signature proves the payer's consent; undefined if no account on any chain could accept it.
 * Permit2 calls an account that has code. For one without code it requires v to be 27 or 28, so 0 and 1 are rewritten.
 * Permit2 does not support EIP-6492: the signature inside the wrapper is passed on, and an account that does not exist
 * yet cannot pay.
 */
function proveSignature(
  { payment, recover, keccak }: Permit2Check,
  digest: Uint8Array,
  payer: Address,
): { readonly signature: Hex; readonly isProven: boolean } | undefined {
  const parsed = parseSignature(payment.payload.signature)
  if (typeof parsed === 'string') return undefined
  if (parsed.kind === 'eip6492') return { signature: parsed.inner, isProven: false }
  if (parsed.kind === 'contract') return { signature: parsed.signature, isProven: false }
  const signature = bytesToHex(concatBytes(parsed.compact, Uint8Array.of(parsed.v)))
  return { signature, isProven: recoverAddress(recover, keccak, digest, parsed) === payer.toLowerCase() }
}
