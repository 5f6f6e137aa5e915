import {
  composeJws,
  type JsonObject,
  jwsSigningInput,
  type Offer,
  offerPayload,
  offersExtension,
  receiptPayload,
  requirementsV2,
  requireNetwork,
  utf8,
} from '@purser/protocol'
import { unixSeconds } from '../../../platform/clock.ts'
import { keyIdOf } from '../../../platform/http/key-set.ts'
import type { Ctx } from '../ports.ts'
import type { PaymentRow } from '../store.ts'

type Signing = Pick<Ctx, 'serviceSeal' | 'baseUrl'>

/**
 * Returns the extension that lets a payer prove what was requested: one signed offer for each way to pay. Source: x402 extension
 * offer-and-receipt, sections 4 and 6.1.
 */
export async function signOffers(ctx: Signing, offers: readonly Offer[], validUntil: Date): Promise<JsonObject> {
  const signed = offers.map((offer) => {
    const terms = {
      resourceUrl: offer.resource,
      requirements: requirementsV2(offer),
      validUntil: unixSeconds(validUntil),
    }
    return sign(ctx, offerPayload(terms))
  })
  return offersExtension(await Promise.all(signed))
}

/**
 * Returns a receipt as a JWS that anybody can check: this payer paid for this resource, in this transaction. Null for a payment
 * without a payer or a resource (stubs, and calls that named none).
 */
export async function signReceipt(ctx: Signing, payment: PaymentRow): Promise<string | null> {
  const { resource, payer, txHash, settledAt, network } = payment
  if (resource === null || payer === null || settledAt === null) return null
  const { caip2 } = requireNetwork(network)
  const facts = { resourceUrl: resource, network: caip2, payer, issuedAt: unixSeconds(settledAt) }
  return sign(ctx, receiptPayload(txHash === null ? facts : { ...facts, transaction: txHash }))
}

async function sign({ serviceSeal, baseUrl }: Signing, payload: JsonObject): Promise<string> {
  const input = jwsSigningInput({ alg: 'EdDSA', kid: keyIdOf(baseUrl, serviceSeal.kid) }, payload)
  return composeJws(input, await serviceSeal.sign(utf8(input)))
}
