import { timingSafeEqual } from 'node:crypto'
import {
  challengeBinding,
  type MppChallenge,
  type MppCredential,
  parseMppCredential,
  sameDigest,
} from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import { mppMethodNamed, mppMethodNames } from '../methods/index.ts'
import type { Ctx } from '../ports.ts'
import type { VerifyRequest } from '../schema.ts'
import { refusedMpp } from './refused.ts'
import { isInScope } from './scope.ts'

/**
 * Returns the credential once its challenge is proven genuine for this request: made under a valid secret, for this organization
 * and environment, not expired, for this resource and this body. Otherwise it refuses, cheapest checks first. The caller checks
 * price and wallet. The hash of a payment that was already sent is accepted after the challenge has expired, since its money may
 * have arrived.
 */
export async function openMppCredential(ctx: Ctx, request: VerifyRequest): Promise<MppCredential> {
  const parsed = parseMppCredential(request.credential)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: parsed.fault.path })
  const { challenge } = parsed.value
  if (!isKnownMethod(challenge))
    throw refusedMpp('method-unsupported', `Pay with ${mppMethodNames.map((name) => `${name}/charge`).join(' or ')}.`)
  if (!(await isGenuine(ctx, challenge)))
    throw refusedMpp('invalid-challenge', 'The challenge is not one that was made here, or it was changed.')
  if (!isSent(parsed.value) && isExpired(ctx, challenge))
    throw refusedMpp('payment-expired', 'The challenge has expired.')
  if (!isInScope(challenge, request.resource))
    throw refusedMpp(
      'invalid-challenge',
      'The challenge was made for another resource; verify with the one that it was made for, query and all.',
    )
  if (!isForBody(challenge, request.digest))
    throw refusedMpp(
      'invalid-challenge',
      'The challenge was made for another request body; verify with the digest that it was made for.',
    )
  return parsed.value
}

function isKnownMethod({ method, intent }: MppChallenge): boolean {
  return intent === 'charge' && mppMethodNamed(method) !== undefined
}

/**
 * Whether the service made this challenge. Texts are compared, not the bytes that they encode: the last character of an id has
 * two unused bits, so a payer could otherwise present one challenge under four ids.
 */
async function isGenuine(ctx: Ctx, challenge: MppChallenge): Promise<boolean> {
  const { all } = await ctx.mppSecrets.macs(ctx.tenant)
  const binding = challengeBinding(challenge)
  const given = Buffer.from(challenge.id)
  return all.some((mac) => {
    const expected = Buffer.from(mac(binding))
    return expected.length === given.length && timingSafeEqual(expected, given)
  })
}

export function isExpired(ctx: Ctx, { expires }: MppChallenge): boolean {
  return expires === undefined || instantOf(expires) <= ctx.clock.now()
}

/** Whether the payer sent the money before presenting the credential. */
export function isSent({ challenge, payload }: MppCredential): boolean {
  return mppMethodNamed(challenge.method)?.isSent(payload) === true
}

function isForBody({ digest }: MppChallenge, given: string | undefined): boolean {
  if (digest === undefined || given === undefined) return digest === given
  return sameDigest(digest, given)
}
