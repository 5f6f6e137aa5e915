import type { Address } from '../address.ts'
import { bytesToHex, type Hex } from '../bytes.ts'
import { addressWord, bytes32Word, bytesTail, selectorOf, uintWord } from '../evm-abi.ts'
import { keccak256 } from '../hash.ts'
import { utf8 } from '../utf8.ts'
import { permit2Address } from './permit2.ts'
import type { Permit2Transfer } from './permit2-digest.ts'
import type { Permit2612 } from './permit2-eip2612.ts'
import type { Reason } from './reasons.ts'

/** A settlement of a Permit2 payment: the permitted transfer, the amount to take, and the payer's signatures. */
export type Permit2Settlement = {
  readonly transfer: Permit2Transfer
  /** In the token's smallest unit. For `exact` it equals the permitted amount. */
  readonly amount: bigint
  readonly signature: Hex
  readonly permit2612: Permit2612 | undefined
}

const permit = '((address,uint256),uint256,uint256)'
const permit2612 = '(uint256,uint256,bytes32,bytes32,uint8)'
const selectors = {
  exact: {
    settle: selectorOf(`settle(${permit},address,(address,uint256),bytes)`),
    settleWithPermit: selectorOf(`settleWithPermit(${permit2612},${permit},address,(address,uint256),bytes)`),
  },
  upto: {
    settle: selectorOf(`settle(${permit},uint256,address,(address,address,uint256),bytes)`),
    settleWithPermit: selectorOf(
      `settleWithPermit(${permit2612},${permit},uint256,address,(address,address,uint256),bytes)`,
    ),
  },
} as const
const allowance = selectorOf('allowance(address,address)')
const nonceBitmap = selectorOf('nonceBitmap(address,uint256)')
const wordDigits = 64
const permit2612Words = 5

/**
 * Call data for the x402 proxy that settles a permit: `settle`, or `settleWithPermit` if the payer also signed an
 * EIP-2612 permit. Source: @x402/evm 2.27.0 `constants.ts`, x402ExactPermit2ProxyABI and x402UptoPermit2ProxyABI.
 *
 * @example
 * const account = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const transfer = { scheme: 'exact', spender: permit2Proxies.exact, owner: account, token: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', permitted: 10_000n, nonce: 1n, deadline: 1_740_672_154n, witness: { to: account, validAfter: 0n } }
 * encodePermit2Settle({ transfer, amount: 10_000n, signature: '0x' }).slice(0, 10) // '0x13cd3b53'
 */
export function encodePermit2Settle({ transfer, amount, signature, permit2612 }: Permit2Settlement): Hex {
  const before = permit2612 === undefined ? '' : permit2612Tuple(permit2612)
  const fields = before + settleFields(transfer, amount)
  const selector = selectors[transfer.scheme][permit2612 === undefined ? 'settle' : 'settleWithPermit']
  const tailAt = BigInt((fields.length + wordDigits) / 2)
  return `${selector}${fields}${uintWord(tailAt)}${bytesTail(signature)}`
}

/**
 * Whether this call data, sent to the proxy, settles exactly this permit with exactly this amount, with any signature.
 * If such a transaction succeeded, the permit was paid, because the proxy reverts otherwise.
 *
 * @example
 * const account = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const transfer = { scheme: 'exact', spender: permit2Proxies.exact, owner: account, token: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', permitted: 10_000n, nonce: 1n, deadline: 1_740_672_154n, witness: { to: account, validAfter: 0n } }
 * const settle = encodePermit2Settle({ transfer, amount: 10_000n, signature: '0x' })
 * isPermit2Settle(settle, transfer, 10_000n) // true
 * isPermit2Settle(settle, { ...transfer, nonce: 2n }, 10_000n) // false
 */
export function isPermit2Settle(data: string, transfer: Permit2Transfer, amount: bigint): boolean {
  const { settle, settleWithPermit } = selectors[transfer.scheme]
  const call = data.toLowerCase()
  const fields = settleFields(transfer, amount)
  if (call.startsWith(settle)) return call.startsWith(fields, settle.length)
  return (
    call.startsWith(settleWithPermit) && call.startsWith(fields, settleWithPermit.length + permit2612Words * wordDigits)
  )
}

/** Topics of the logs that a proxy writes at the end of `settle` and of `settleWithPermit`. They name no permit. */
export const permit2SettledTopics: readonly Hex[] = ['Settled()', 'SettledWithPermit()'].map((event) =>
  bytesToHex(keccak256(utf8(event))),
)

/**
 * Whether this call data, sent to any contract, contains a settlement of exactly this permit, which the contract may
 * pass on to the proxy. That proves nothing by itself. Always false for `upto`, whose proxy accepts only direct calls
 * of the facilitator.
 *
 * @example
 * const account = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
 * const transfer = { scheme: 'exact', spender: permit2Proxies.exact, owner: account, token: '0x036CbD53842c5426634e7929541eC2318f3dCF7e', permitted: 10_000n, nonce: 1n, deadline: 1_740_672_154n, witness: { to: account, validAfter: 0n } }
 * const settle = encodePermit2Settle({ transfer, amount: 10_000n, signature: '0x' })
 * containsPermit2Settle('0x12345678' + settle.slice(10), transfer, 10_000n) // true
 * containsPermit2Settle('0x12345678', transfer, 10_000n) // false
 */
export function containsPermit2Settle(data: string, transfer: Permit2Transfer, amount: bigint): boolean {
  return transfer.scheme === 'exact' && data.toLowerCase().includes(settleFields(transfer, amount))
}

/**
 * Call data to query how much of an account's tokens Permit2 may spend.
 *
 * @example
 * encodePermit2Allowance('0x209693bc6afc0c5328ba36faf03c514ef312287c') // '0xdd62ed3e000000000000000000000000209693bc6afc0c5328ba36faf03c514ef312287c000000000000000000000000000000000022d473030f116ddee9f6b43ac78ba3'
 */
export function encodePermit2Allowance(owner: Address): Hex {
  return `${allowance}${addressWord(owner)}${addressWord(permit2Address)}`
}

/**
 * Call data to query Permit2 for the word of 256 nonces that contains this one.
 *
 * @example
 * encodeNonceBitmap('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 1n).slice(0, 10) // '0x4fe02b44'
 */
export function encodeNonceBitmap(owner: Address, nonce: bigint): Hex {
  return `${nonceBitmap}${addressWord(owner)}${uintWord(nonce >> 8n)}`
}

/**
 * Whether Permit2's bitmap for a nonce says that it was used or invalidated by its owner.
 *
 * @example
 * isNonceSpent(0b100n, 2n) // true
 * isNonceSpent(0b100n, 3n) // false
 */
export function isNonceSpent(bitmap: bigint, nonce: bigint): boolean {
  return ((bitmap >> (nonce & 255n)) & 1n) === 1n
}

const revertReasons: readonly (readonly [string, Reason])[] = [
  ['InvalidNonce()', 'permit2_invalid_nonce'],
  ['SignatureExpired(uint256)', 'permit2_deadline_expired'],
  ['InvalidAmount(uint256)', 'permit2_invalid_amount'],
  ['InvalidAmount()', 'permit2_invalid_amount'],
  ['InvalidSignature()', 'invalid_permit2_signature'],
  ['InvalidSignatureLength()', 'invalid_permit2_signature'],
  ['InvalidSigner()', 'invalid_permit2_signature'],
  ['InvalidContractSignature()', 'invalid_permit2_signature'],
  ['InvalidDestination()', 'permit2_invalid_destination'],
  ['InvalidOwner()', 'permit2_invalid_owner'],
  ['PaymentTooEarly()', 'permit2_payment_too_early'],
  ['Permit2612AmountMismatch()', 'permit2_2612_amount_mismatch'],
  ['AmountExceedsPermitted()', 'upto_amount_exceeds_permitted'],
  ['UnauthorizedFacilitator()', 'upto_unauthorized_facilitator'],
]
const reasonsBySelector = new Map<string, Reason>(revertReasons.map(([error, reason]) => [selectorOf(error), reason]))

/**
 * The reason behind the error with which the proxy or Permit2 reverted; undefined for an unknown error, such as one of
 * the token.
 *
 * @example
 * reasonOfPermit2Revert(selectorOf('InvalidNonce()')) // 'permit2_invalid_nonce'
 * reasonOfPermit2Revert('0x12345678') // undefined
 */
export function reasonOfPermit2Revert(data: string): Reason | undefined {
  return reasonsBySelector.get(data.slice(0, 10).toLowerCase())
}

function settleFields(
  { scheme, owner, token, permitted, nonce, deadline, witness }: Permit2Transfer,
  amount: bigint,
): string {
  const permitWords = addressWord(token) + uintWord(permitted) + uintWord(nonce) + uintWord(deadline)
  if (scheme === 'exact')
    return permitWords + addressWord(owner) + addressWord(witness.to) + uintWord(witness.validAfter)
  if (witness.facilitator === undefined) throw new RangeError('an upto permit must name its facilitator')
  const witnessWords = addressWord(witness.to) + addressWord(witness.facilitator) + uintWord(witness.validAfter)
  return permitWords + uintWord(amount) + addressWord(owner) + witnessWords
}

function permit2612Tuple({ value, deadline, r, s, v }: Permit2612): string {
  return uintWord(value) + uintWord(deadline) + bytes32Word(r) + bytes32Word(s) + uintWord(BigInt(v))
}
