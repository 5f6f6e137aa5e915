import { encodePaymentRequired, type Offer, paymentRequiredV1, paymentRequiredV2 } from '@purser/protocol'
import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { failPlatform } from '../../platform/errors.ts'
import { getPayableWallet } from '../wallets/index.ts'
import { payableTokens, rawPrice, refuseBelowMinimum } from './price.ts'
import type { Challenge, ChallengeRequest } from './schema.ts'

/** How long a payer may take, in seconds; it bounds the authorisation that a client signs. */
export const challengeSeconds = 300

/**
 * The challenge for one paid route, in each protocol that is asked for, from one clock reading and one price. x402 has no
 * identifier in its challenge: what makes two payments differ is the nonce that each payer draws.
 */
export async function challenge(
  ctx: Ctx,
  request: ChallengeRequest,
): Promise<z.input<typeof Challenge> | z.input<typeof Challenge>[]> {
  admitCaller(ctx, request)
  const wallet = await getPayableWallet(ctx, request.walletId)
  const resource = request.resource ?? `https://${request.hostname}/`
  const description = request.description ?? ''
  const mimeType = request.mimeType ?? 'application/json'
  const offers = payableTokens(wallet).map((token): Offer => {
    const rawAmount = rawPrice(request.price, token)
    refuseBelowMinimum(ctx, rawAmount, token)
    return {
      network: wallet.network,
      token,
      rawAmount,
      payTo: wallet.address,
      resource,
      description,
      mimeType,
      maxTimeoutSeconds: challengeSeconds,
    }
  })
  const expiresAt = instantOf(ctx.clock.now().getTime() + challengeSeconds * 1000)
  // Version 1 has no name for Optimism and Arbitrum: their wallets are paid with version 2 alone.
  const v1 = request.acceptX402 ? paymentRequiredV1({ offers, error: 'X-PAYMENT header is required' }) : undefined
  const one = (): z.input<typeof Challenge> => ({
    x402: request.acceptX402
      ? encodePaymentRequired(paymentRequiredV2({ offers, resource: { url: resource, description, mimeType } }))
      : null,
    x402V1: v1 === undefined ? null : { ...v1 },
    mpp: null,
    expiresAt,
  })
  return request.count === undefined ? one() : Array.from({ length: request.count }, one)
}

function admitCaller(ctx: Ctx, request: ChallengeRequest): void {
  if (request.ip === undefined) return
  const admission = ctx.admitChallenge(`${ctx.tenant.organisationId}/${ctx.tenant.environment}/${request.ip}`)
  if (!admission.admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: admission.resetSeconds })
}
