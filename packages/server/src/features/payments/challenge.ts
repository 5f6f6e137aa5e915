import {
  encodePaymentRequired,
  type JsonObject,
  type Offer,
  offerReceiptKey,
  type PaymentRequirementsV2,
  paymentRequiredV1,
  paymentRequiredV2,
} from '@purser/protocol'
import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { admitCaller } from './callers.ts'
import { mintChallengeId } from './delivery/challenge-id.ts'
import { fail, failBody } from './errors.ts'
import { createMppMint } from './mpp/challenges.ts'
import { signOffers } from './offers/sign.ts'
import { paymentIdentifierExtension } from './payment-identifier.ts'
import type { Ctx } from './ports.ts'
import { isFree, isWorthSettling, rawPrice, tokensByAuthorization } from './price.ts'
import type { Challenge, ChallengeRequest, CompactChallenges } from './schema.ts'
import { refuseSanctionedReceivers } from './screened.ts'
import { walletsOf } from './which-wallet.ts'

/** How long a payer may take, in seconds. It bounds the authorization that a client signs. */
export const challengeSeconds = 300

/**
 * Returns the challenge for one paid route, in each accepted protocol that can pay one of the wallets. All parts use one clock
 * reading and one price. Each challenge has its own ids, however many are requested at once: an MPP challenge is paid once, and
 * the id in an x402 offer proves which payer received it.
 */
export async function challenge(
  ctx: Ctx,
  request: ChallengeRequest,
): Promise<z.input<typeof Challenge> | z.input<typeof Challenge>[] | z.input<typeof CompactChallenges>> {
  if (request.ip !== undefined) await admitCaller(ctx, request.ip)
  const wallets = await walletsOf(ctx, request)
  refuseSanctionedReceivers(ctx, wallets)
  const expiresAt = instantOf(ctx.clock.now().getTime() + challengeSeconds * 1000)
  const x402 = await x402Challenges(ctx, request, wallets, expiresAt)
  const mint = request.acceptMPP ? await createMppMint(ctx, request, wallets, expiresAt) : undefined
  if (x402 === undefined && mint === undefined) throw refusalOf(ctx, request, wallets)
  const shared = { x402V1: x402?.v1 ?? null, expiresAt }
  const one = (): z.input<typeof Challenge> => ({
    ...shared,
    x402: x402?.v2(x402.mintId()) ?? null,
    mpp: mint?.() ?? null,
  })
  const { count } = request
  if (count === undefined) return one()
  if (!request.compact) return Array.from({ length: count }, one)
  const many = (make: (() => string) | undefined) => (make === undefined ? null : Array.from({ length: count }, make))
  return { ...shared, x402: x402?.v2() ?? null, challengeIds: many(x402?.mintId), mpp: many(mint) }
}

interface X402Challenges {
  readonly mintId: () => string
  /** The header's value with this id in each offer. */
  readonly v2: (challengeId?: string) => string
  readonly v1: Record<string, unknown> | undefined
}

/**
 * Returns the challenge of both x402 versions; undefined if x402 is not accepted, no token of the wallets supports it, or the
 * price is zero.
 */
async function x402Challenges(
  ctx: Ctx,
  request: ChallengeRequest,
  wallets: readonly ReceivingWallet[],
  expiresAt: Date,
): Promise<X402Challenges | undefined> {
  const isWanted = request.acceptX402 && !isFree(request.price)
  const offers = isWanted ? wallets.flatMap((wallet) => x402Offers(ctx, request, wallet)) : []
  const [first] = offers
  if (first === undefined) return undefined
  const { resource: url, description, mimeType } = first
  const required = paymentRequiredV2({ offers, resource: { url, description, mimeType } })
  const signed: JsonObject = request.signOffers ? { [offerReceiptKey]: await signOffers(ctx, offers, expiresAt) } : {}
  const extensions = { ...required.extensions, ...paymentIdentifierExtension(), ...signed }
  const macs = await ctx.mppSecrets.macs(ctx.tenant)
  const v2 = (challengeId?: string) => {
    const accepts = required.accepts.map((offer) => withChallengeId(offer, challengeId))
    return encodePaymentRequired({ ...required, accepts, extensions })
  }
  // Version 1 has no name for Optimism and Arbitrum: wallets there are paid only by version 2.
  const v1 = paymentRequiredV1({ offers, error: 'X-PAYMENT header is required' })
  return { mintId: () => mintChallengeId(macs, ctx), v2, v1: v1 === undefined ? undefined : { ...v1 } }
}

function withChallengeId(offer: PaymentRequirementsV2, challengeId: string | undefined): PaymentRequirementsV2 {
  return challengeId === undefined ? offer : { ...offer, extra: { ...offer.extra, challengeId } }
}

function x402Offers(ctx: Ctx, request: ChallengeRequest, wallet: ReceivingWallet): Offer[] {
  const { network, address: payTo } = wallet
  const resource = request.resource ?? `https://${request.hostname}/`
  const shown = { description: request.description ?? '', mimeType: request.mimeType ?? 'application/json' }
  return tokensByAuthorization(ctx, wallet).flatMap((token) => {
    const rawAmount = rawPrice(request.price, token)
    if (!isWorthSettling(ctx, network, token, rawAmount)) return []
    return [{ network, token, rawAmount, payTo, resource, ...shown, maxTimeoutSeconds: challengeSeconds }]
  })
}

/**
 * Explains why no protocol can make an offer: x402 cannot charge a price of zero, and no protocol supports a token it cannot move
 * or an amount below the minimum.
 */
function refusalOf(ctx: Ctx, request: ChallengeRequest, wallets: readonly ReceivingWallet[]): Error {
  if (isFree(request.price)) return failBody('amount-invalid', { reason: 'zero' })
  const isPayable = wallets.some(
    (wallet) => tokensByAuthorization(ctx, wallet).length > 0 || !wallet.network.settlesEip3009,
  )
  return isPayable ? failBody('amount-below-minimum') : fail('chain-not-supported')
}
