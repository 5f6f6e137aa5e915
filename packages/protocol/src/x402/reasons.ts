/**
 * Every reason used in x402 responses, spelled exactly as in the reference implementation, because clients compare them
 * as text. Source: @x402/evm 2.27.0 `exact/facilitator/errors.ts` and `upto/facilitator/errors.ts`; for the general
 * ones, x402 specification v2 section 9.
 */
export const reasons = [
  'asset_not_deployed_contract',
  'invalid_exact_evm_scheme',
  'invalid_exact_evm_network_mismatch',
  'invalid_exact_evm_missing_eip712_domain',
  'invalid_exact_evm_recipient_mismatch',
  'invalid_exact_evm_signature',
  'invalid_exact_evm_payload_authorization_valid_before',
  'invalid_exact_evm_payload_authorization_valid_after',
  'invalid_exact_evm_authorization_value',
  'invalid_exact_evm_payload_authorization_value_mismatch',
  'invalid_exact_evm_payload_undeployed_smart_wallet',
  'invalid_exact_evm_transaction_failed',
  'invalid_exact_evm_transfer_event_mismatch',
  'invalid_exact_evm_token_name_mismatch',
  'invalid_exact_evm_token_version_mismatch',
  'invalid_exact_evm_eip3009_not_supported',
  'invalid_exact_evm_nonce_already_used',
  'invalid_exact_evm_insufficient_balance',
  'invalid_exact_evm_transaction_simulation_failed',
  'invalid_exact_evm_failed_to_parse_signature',
  'unsupported_payload_type',
  'invalid_transaction_state',
  'eip6492_factory_not_allowed',
  'smart_wallet_deployment_failed',
  'settlement_pending',
  'invalid_permit2_spender',
  'invalid_permit2_recipient_mismatch',
  'invalid_permit2_signature',
  'permit2_deadline_expired',
  'permit2_not_yet_valid',
  'permit2_amount_mismatch',
  'permit2_token_mismatch',
  'permit2_allowance_required',
  'permit2_simulation_failed',
  'permit2_insufficient_balance',
  'permit2_proxy_not_deployed',
  'permit2_invalid_amount',
  'permit2_invalid_destination',
  'permit2_invalid_owner',
  'permit2_invalid_nonce',
  'permit2_payment_too_early',
  'permit2_2612_amount_mismatch',
  'invalid_eip2612_extension_format',
  'eip2612_from_mismatch',
  'eip2612_asset_mismatch',
  'eip2612_spender_not_permit2',
  'eip2612_deadline_expired',
  'invalid_upto_evm_scheme',
  'invalid_upto_evm_network_mismatch',
  'invalid_upto_evm_payload_settlement_exceeds_amount',
  'invalid_upto_evm_transaction_failed',
  'upto_amount_exceeds_permitted',
  'upto_facilitator_mismatch',
  'upto_unauthorized_facilitator',
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_x402_version',
  'unexpected_verify_error',
  'unexpected_settle_error',
] as const

/** A member of `reasons`. */
export type Reason = (typeof reasons)[number]

/**
 * Whether a text is a known reason.
 *
 * @example
 * isReason('invalid_payload') // true
 */
export function isReason(text: string): text is Reason {
  return reasons.some((reason) => reason === text)
}

const revertReasons: readonly (readonly [RegExp, Reason])[] = [
  [/authorization is expired|AuthorizationExpired/i, 'invalid_exact_evm_payload_authorization_valid_before'],
  [/authorization is not yet valid|AuthorizationNotYetValid/i, 'invalid_exact_evm_payload_authorization_valid_after'],
  [
    /authorization is used|AuthorizationAlreadyUsed|AuthorizationUsedOrCanceled/i,
    'invalid_exact_evm_nonce_already_used',
  ],
  [/exceeds balance|insufficient balance|ERC20InsufficientBalance/i, 'invalid_exact_evm_insufficient_balance'],
  [/invalid signature|SignerMismatch|InvalidSignature/i, 'invalid_exact_evm_signature'],
]

/**
 * Returns the reason for a token's revert text; `fallback` for unknown texts, because a guess would make the payer fix
 * the wrong thing.
 *
 * @example
 * reasonOfRevert('FiatTokenV2: authorization is used or canceled', 'invalid_exact_evm_signature') // 'invalid_exact_evm_nonce_already_used'
 */
export function reasonOfRevert(words: string, fallback: Reason): Reason {
  return revertReasons.find(([pattern]) => pattern.test(words))?.[1] ?? fallback
}
