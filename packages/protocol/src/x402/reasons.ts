/**
 * Every reason that x402 answers carry here, character for character as the reference implementation spells them; clients
 * compare them as text.
 * Source: @x402/evm 2.27.0 `exact/facilitator/errors.ts`; the general ones x402 specification v2 section 9.
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
  'invalid_network',
  'invalid_payload',
  'invalid_payment_requirements',
  'invalid_scheme',
  'unsupported_scheme',
  'invalid_x402_version',
  'unexpected_verify_error',
  'unexpected_settle_error',
] as const

/** One of the reasons of `reasons`. */
export type Reason = (typeof reasons)[number]

/** Whether a text is one of the reasons that we know. */
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
 * The reason behind the words with which a token refused a transfer; `fallback` for words that are not known, since a guess
 * would tell the payer to mend what is not broken.
 */
export function reasonOfRevert(words: string, fallback: Reason): Reason {
  return revertReasons.find(([pattern]) => pattern.test(words))?.[1] ?? fallback
}
