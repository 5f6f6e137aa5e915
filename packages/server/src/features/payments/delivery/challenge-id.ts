import { timingSafeEqual } from 'node:crypto'
import type { PaymentPayload } from '@purser/protocol'
import type { MppMacs } from '../../../custody/index.ts'
import type { Ctx } from '../ports.ts'

const randomBytes = 16
const pattern = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/

/**
 * Returns the id that an x402 offer carries in `extra.challengeId`: 128 random bits and their MAC. The payer's client
 * returns it with the payment, and it never appears on chain, so whoever presents it is the payer. It has 66
 * characters, a multiple of three, so that a client of the service can replace it inside base64 text.
 */
export function mintChallengeId({ current }: MppMacs, { random }: Pick<Ctx, 'random'>): string {
  const drawn = Buffer.from(random.bytes(randomBytes)).toString('base64url')
  return `${drawn}.${current(bindingOf(drawn))}`
}

/** Returns the `extra.challengeId` of a payment if this service made it; null if there is none or the payer invented it. */
export async function challengeIdOf(ctx: Ctx, payment: PaymentPayload): Promise<string | null> {
  const named = payment.x402Version === 2 ? payment.accepted.extra?.challengeId : undefined
  if (typeof named !== 'string' || !pattern.test(named)) return null
  const { all } = await ctx.mppSecrets.macs(ctx.tenant)
  const [drawn = '', mac = ''] = named.split('.')
  return all.some((macOf) => isSame(macOf(bindingOf(drawn)), mac)) ? named : null
}

/** Compares two texts in constant time. */
export function isSame(expected: string, given: string): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(given)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Binds the id to a realm that no MPP challenge can have, because an MPP realm is a host name. */
function bindingOf(drawn: string): string {
  return `x402 offer|${drawn}`
}
