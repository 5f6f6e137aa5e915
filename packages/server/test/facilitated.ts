import {
  type Answer,
  type CredentialChanges,
  type Org,
  type Payer,
  request,
  type V2Payload,
  type World,
} from './world.ts'

/** What any x402 server sends to its facilitator. */
export interface FacilitatorBody {
  readonly x402Version: number
  readonly paymentPayload: Record<string, unknown>
  readonly paymentRequirements: Record<string, unknown>
}

export const soldAt = 'https://api.example.com/weather?city=Lima'

export interface Purchase {
  readonly payer: Payer
  readonly wallet: { readonly id: string }
  readonly price?: string
  readonly changes?: CredentialChanges
}

/** A version 2 payment by the official client, with the requirements that it fulfills. */
export async function aPaymentBody(world: World, org: Org, purchase: Purchase): Promise<FacilitatorBody> {
  const requested = { walletId: purchase.wallet.id, resource: soldAt, price: purchase.price ?? '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', requested)
  const credential = await purchase.payer.credential(challenge, purchase.changes)
  const payload: V2Payload = JSON.parse(Buffer.from(credential, 'base64').toString('utf8'))
  const paymentPayload = { ...payload, resource: { url: soldAt, description: 'Weather', mimeType: 'text/plain' } }
  return { x402Version: 2, paymentPayload, paymentRequirements: { ...payload.accepted } }
}

/** The payment in version 1; its signature is independent of the version. */
export function asV1({ paymentPayload, paymentRequirements }: FacilitatorBody): FacilitatorBody {
  const { amount, network: _, ...rest } = paymentRequirements
  const network = 'base-sepolia'
  const requirements = {
    ...rest,
    network,
    maxAmountRequired: amount,
    resource: soldAt,
    description: 'Weather',
    mimeType: 'text/plain',
  }
  const payload = { x402Version: 1, scheme: 'exact', network, payload: paymentPayload.payload }
  return { x402Version: 1, paymentPayload: payload, paymentRequirements: requirements }
}

/** The body with changed members of its requirements; `extra` is merged. */
export function withRequirements(body: FacilitatorBody, change: Readonly<Record<string, unknown>>): FacilitatorBody {
  const extra = { ...Object(body.paymentRequirements.extra), ...Object(change.extra) }
  return { ...body, paymentRequirements: { ...body.paymentRequirements, ...change, extra } }
}

export interface Facilitator {
  verify(body: unknown, headers?: Record<string, string>): Promise<Answer>
  settle(body: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** The facilitator client of a process, with a key. */
export function facilitatorOf(base: string, key: string): Facilitator {
  const ask = (verb: string, body: unknown, headers: Record<string, string> = {}) =>
    request(base, { key, method: 'POST', path: `/facilitator/${verb}`, body, headers })
  return {
    verify: (body, headers) => ask('verify', body, headers),
    settle: (body, headers) => ask('settle', body, headers),
  }
}
