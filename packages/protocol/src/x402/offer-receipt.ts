import type { JsonObject, PaymentRequirementsV2 } from './messages.ts'

/** The key of the extension under `extensions`. Source: x402 extension offer-and-receipt 1.0, and @x402/extensions 2.27.0, which clients run. */
export const offerReceiptKey = 'offer-receipt'

const version = 1

/**
 * The statement in a signed offer: the resource, its payment and its expiry. `validUntil` is in Unix seconds. A payer who keeps
 * it can prove what was offered, whatever the server says later (section 4).
 */
export function offerPayload(offer: {
  readonly resourceUrl: string
  readonly requirements: PaymentRequirementsV2
  readonly validUntil: number
}): JsonObject {
  const { scheme, network, asset, payTo, amount } = offer.requirements
  return {
    version,
    resourceUrl: offer.resourceUrl,
    scheme,
    network,
    asset,
    payTo,
    amount,
    validUntil: offer.validUntil,
  }
}

/** The statement in a signed receipt: this payer paid for this resource. `issuedAt` is in Unix seconds (section 5). */
export function receiptPayload(receipt: {
  readonly resourceUrl: string
  /** CAIP-2. */
  readonly network: string
  readonly payer: string
  readonly issuedAt: number
  readonly transaction?: string | undefined
}): JsonObject {
  const { resourceUrl, network, payer, issuedAt, transaction } = receipt
  const facts = { version, network, resourceUrl, payer, issuedAt }
  return transaction === undefined ? facts : { ...facts, transaction }
}

const jwsSchema = {
  type: 'object',
  properties: { format: { type: 'string' }, acceptIndex: { type: 'integer' }, signature: { type: 'string' } },
  required: ['format', 'signature'],
}

/** The extension of a challenge: one JWS for each of `accepts`, in their order (section 6.1). */
export function offersExtension(jwsByAccept: readonly string[]): JsonObject {
  const offers = jwsByAccept.map((signature, acceptIndex) => ({ format: 'jws', acceptIndex, signature }))
  const properties = { offers: { type: 'array', items: jwsSchema } }
  return { info: { offers }, schema: { type: 'object', properties, required: ['offers'] } }
}

/** The extension of a settlement response (section 6.5). */
export function receiptExtension(jws: string): JsonObject {
  const properties = { receipt: jwsSchema }
  return {
    info: { receipt: { format: 'jws', signature: jws } },
    schema: { type: 'object', properties, required: ['receipt'] },
  }
}
