import type { JsonObject, PaymentRequirementsV2 } from './messages.ts'

/** The key of the extension under `extensions`. Source: x402 extension offer-and-receipt 1.0, and @x402/extensions 2.27.0, which clients run. */
export const offerReceiptKey = 'offer-receipt'

const version = 1

/**
 * The statement in a signed offer: the resource, its payment and its expiry. `validUntil` is in Unix seconds. A payer who keeps
 * it can prove what was offered, whatever the server says later (section 4).
 *
 * @example
 * const network = networkByName('base-sepolia')
 * const offer = { network, token: tokenBySymbol(network, 'USDC'), rawAmount: 10_000n, payTo: '0x209693Bc6afc0C5328bA36FaF03C514EF312287C', maxTimeoutSeconds: 60 }
 * offerPayload({ resourceUrl: 'https://api.example.com/report', requirements: requirementsV2(offer), validUntil: 1_740_672_154 }).amount // '10000'
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

/**
 * The statement in a signed receipt: this payer paid for this resource. `issuedAt` is in Unix seconds (section 5).
 *
 * @example
 * receiptPayload({ resourceUrl: 'https://api.example.com/report', network: 'eip155:84532', payer: '0x857b06519E91e3A54538791bDbb0E22373e36b66', issuedAt: 1_740_672_100 }).version // 1
 */
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

/**
 * The extension of a challenge: one JWS for each of `accepts`, in their order (section 6.1).
 *
 * @example
 * offersExtension(['header.payload.signature']).info // { offers: [ { format: 'jws', acceptIndex: 0, signature: 'header.payload.signature' } ] }
 */
export function offersExtension(jwsByAccept: readonly string[]): JsonObject {
  const offers = jwsByAccept.map((signature, acceptIndex) => ({ format: 'jws', acceptIndex, signature }))
  const properties = { offers: { type: 'array', items: jwsSchema } }
  return { info: { offers }, schema: { type: 'object', properties, required: ['offers'] } }
}

/**
 * The extension of a settlement response (section 6.5).
 *
 * @example
 * receiptExtension('header.payload.signature').info // { receipt: { format: 'jws', signature: 'header.payload.signature' } }
 */
export function receiptExtension(jws: string): JsonObject {
  const properties = { receipt: jwsSchema }
  return {
    info: { receipt: { format: 'jws', signature: jws } },
    schema: { type: 'object', properties, required: ['receipt'] },
  }
}
