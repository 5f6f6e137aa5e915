/**
 * The header with which a payer proves control of the account: an ISO 8601 time and the signature of
 * `redemptionMessage` (EIP-191).
 */
const redemptionHeader = 'x-service-redemption'

export interface PayerSignature {
  readonly value: string
  readonly signedAt: string
}

/** The payer's redemption signature in a request, if there is a well-formed one. */
export function payerSignatureOf(header: (name: string) => string | undefined): PayerSignature | undefined {
  const [, signedAt, value] = /^(\S{1,40}) (0x[0-9a-fA-F]{130})$/.exec(header(redemptionHeader) ?? '') ?? []
  if (signedAt === undefined || value === undefined || Number.isNaN(Date.parse(signedAt))) return undefined
  return { signedAt, value }
}
