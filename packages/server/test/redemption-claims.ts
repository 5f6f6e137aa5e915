import { type RedemptionClaim, redemptionMessage } from '@purser/protocol'
import { sql } from '../src/platform/db/db.ts'
import { asV1, type FacilitatorBody } from './facilitated.ts'
import type { Payer, World } from './world.ts'

/** A payment as a middleware received it: its credential and the request that it paid for. */
export interface Sold {
  readonly protocol: 'x402' | 'mpp'
  readonly credential: string
  readonly method: string
  readonly resource: string
}

/** An x402 credential with another `extra` in the offer that it names. */
export function withExtra(sold: Sold, extra: object): Sold {
  const payload = JSON.parse(Buffer.from(sold.credential, 'base64').toString('utf8'))
  const changed = { ...payload, accepted: { ...payload.accepted, extra: { name: 'USDC', version: '2', ...extra } } }
  return { ...sold, credential: Buffer.from(JSON.stringify(changed)).toString('base64') }
}

/** An x402 credential in version 1 of the protocol. */
export function asVersion1(sold: Sold): Sold {
  const paymentPayload = JSON.parse(Buffer.from(sold.credential, 'base64').toString('utf8'))
  const v1 = asV1({ x402Version: 2, paymentPayload, paymentRequirements: {} } satisfies FacilitatorBody)
  return { ...sold, credential: Buffer.from(JSON.stringify(v1.paymentPayload)).toString('base64') }
}

/** The payer's signature over what it redeems, with `change` in the signed claim. */
export async function signatureFor(by: Payer, sold: Sold, change: Partial<RedemptionClaim> = {}) {
  const { payload, accepted } = JSON.parse(Buffer.from(sold.credential, 'base64').toString('utf8'))
  const { from, nonce } = payload.authorization
  const asset = accepted?.asset ?? '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
  const payment = `eip3009:eip155:84532:${asset}:${from}:${nonce}`.toLowerCase()
  const signedAt = new Date().toISOString()
  const claim = { payment, method: sold.method, resource: sold.resource, signedAt, ...change }
  return { value: await by.account.signMessage({ message: redemptionMessage(claim) }), signedAt: claim.signedAt }
}

/** Ends a payment's grace period, in which only the handler that served it may redeem it. */
export async function endGracePeriod({ database }: World, paymentId: unknown): Promise<void> {
  const id = String(paymentId)
  await database.db.run(sql`update payments set redemption_until = now() - interval '1 second' where id = ${id}`)
}

/** Makes a payment settled longer ago than any process may take to deliver. */
export async function settledLongAgo({ database }: World, paymentId: unknown): Promise<void> {
  const id = String(paymentId)
  await database.db.run(sql`update payments set settled_at = now() - interval '31 minutes' where id = ${id}`)
}
