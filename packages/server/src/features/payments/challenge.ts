import {
  challengeBinding,
  encodeMppJson,
  encodePaymentRequired,
  formatChallenge,
  type JsonObject,
  type Offer,
  offerReceiptKey,
  type PaymentRequirementsV2,
  paymentRequiredV1,
  paymentRequiredV2,
} from '@purser/protocol'
import type { z } from 'zod'
import { instantOf } from '../../platform/clock.ts'
import { failPlatform } from '../../platform/errors.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { deleteQuietCallers, findOldestRequest, noteCaller } from './caller-store.ts'
import {
  belowMinimum,
  isFree,
  isWorthSettling,
  isWorthSponsoring,
  minimumOn,
  rawPrice,
  refusedZero,
  refuseSanctionedReceivers,
  tokensByAuthorization,
} from './credential.ts'
import { fail } from './errors.ts'
import { type MppTerms, mppTermsOf, type Scope, scopeOf } from './mpp/terms.ts'
import { mintChallengeId, paymentIdentifierExtension } from './new-payment.ts'
import { signOffers } from './offers/sign.ts'
import type { Ctx, Deps } from './ports.ts'
import type { Challenge, ChallengeRequest, CompactChallenges } from './schema.ts'
import { walletsOf } from './verify.ts'

/** Seconds that a payer may take. They bound the authorization that a client signs. */
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
  // Without a recent gas price the minimum would be too low.
  await ctx.gasPrices.recentReads(wallets.map(({ network }) => network))
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
  ctx.attemptCounts.add(ctx.tenant, { challenges: count ?? 1 })
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

function x402Offers(
  ctx: Pick<Ctx, 'chains' | 'gasPrices' | 'settleMicroUsdMin'>,
  request: ChallengeRequest,
  wallet: ReceivingWallet,
): Offer[] {
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
function refusalOf(
  ctx: Pick<Ctx, 'chains' | 'gasPrices' | 'settleMicroUsdMin'>,
  request: ChallengeRequest,
  wallets: readonly ReceivingWallet[],
): Error {
  if (isFree(request.price)) return refusedZero()
  const payable = wallets.filter(
    (wallet) => tokensByAuthorization(ctx, wallet).length > 0 || !wallet.network.settlesEip3009,
  )
  const [first, ...others] = payable.map(({ network }) => minimumOn(ctx, network))
  if (first === undefined) return fail('chain-not-supported')
  return belowMinimum(others.reduce((least, one) => (one.nanoUsd < least.nanoUsd ? one : least), first))
}

const windowMs = 60_000

/**
 * Refuses a caller that used its quota of challenges within the last minute. The count covers all processes and a sliding minute,
 * exact to the millisecond (docs/decisions/0031).
 */
async function admitCaller(
  ctx: Pick<Ctx, 'challengesPerCallerMax' | 'clock' | 'db' | 'tenant'>,
  ip: string,
): Promise<void> {
  const now = ctx.clock.now()
  const since = instantOf(now.getTime() - windowMs)
  if (await noteCaller(ctx.db, ctx.tenant, { ip, since, now, requestsMax: ctx.challengesPerCallerMax })) return
  const oldest = await findOldestRequest(ctx.db, ctx.tenant, { ip, since })
  const waitMs = oldest === undefined ? 0 : oldest.getTime() + windowMs - now.getTime()
  throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) })
}

/** Deletes callers without a request in the last minute. Running it again is harmless. */
export const deleteExpiredCallers: RecurringTask<Deps> = {
  name: 'payments.sweep-challenge-callers',
  everyMs: windowMs,
  run: async (ctx) => {
    await deleteQuietCallers(ctx, instantOf(ctx.clock.now().getTime() - windowMs))
  },
}

const nonceBytes = 16
/** Maximum length of a description in an offer, in UTF-16 units. Every offer of a header repeats it. */
const descriptionMax = 160

/**
 * Returns a function that mints values of `WWW-Authenticate` for this price, each with its own randomness, so that no two payers share an id; the
 * common parts are computed once. Undefined if MPP cannot pay the wallet. With the `intent` `session`, the payment buys a session, but the challenge
 * still has the intent `charge`: official clients pay a `session` only as a payment channel.
 */
async function createMppMint(
  ctx: Ctx,
  request: ChallengeRequest,
  wallets: readonly ReceivingWallet[],
  expiresAt: Date,
): Promise<(() => string) | undefined> {
  const terms = allTermsOf(ctx, request, wallets)
  if (terms.length === 0) return undefined
  const [{ current: mac }, feePayer] = await Promise.all([ctx.mppSecrets.macs(ctx.tenant), paysFee(ctx, terms)])
  const scope = scopeOf(request)
  const common = commonParameters(request, scope, expiresAt)
  // The host may sell other things at other prices, so its challenge promises no price.
  const method = request.resource === undefined ? undefined : request.method
  const drafts = terms.map((one) => {
    const draft = { ...common, method: one.method.name, request: encodedRequest(one, { feePayer }) }
    return { draft, binding: challengeBinding(draft) }
  })
  const mintOne = ({ draft, binding }: (typeof drafts)[number]): string => {
    const opaque = opaqueOf(ctx, scope, method)
    return formatChallenge({ ...draft, opaque, id: mac(`${binding}${opaque}`) })
  }
  return () => drafts.map(mintOne).join(', ')
}

/** Payment terms and the wallet that they pay. */
type WalletTerms = MppTerms & { readonly wallet: ReceivingWallet }

/**
 * Most offers of a challenge, those of the first wallet first. The header stays well below the 8 KB that clients and proxies
 * accept.
 */
const offersMax = 4

/** Returns the terms of all wallets. A price of zero has one proof, whatever the number of wallets. */
function allTermsOf(
  ctx: Pick<Ctx, 'chains' | 'gasPrices' | 'settleMicroUsdMin' | 'tenant'>,
  request: ChallengeRequest,
  wallets: readonly ReceivingWallet[],
): readonly WalletTerms[] {
  const requested = isFree(request.price) ? wallets.slice(0, 1) : wallets
  const terms = requested.flatMap((wallet) => mppTermsOf(ctx, wallet, request.price).map((one) => ({ ...one, wallet })))
  return terms
    .filter(({ network, token, rawAmount }) => rawAmount === 0n || isWorthSettling(ctx, network, token, rawAmount))
    .slice(0, offersMax)
}

/** Whether the service pays the payer's fee, if any of these methods permits that. */
async function paysFee(ctx: Ctx, terms: readonly MppTerms[]): Promise<boolean> {
  const isWorthIt = ({ network, token, rawAmount }: MppTerms) =>
    rawAmount > 0n && isWorthSponsoring(ctx, network, token, rawAmount)
  const paid = new Map(terms.filter(isWorthIt).map((one) => [one.network.name, one]))
  const offers = await Promise.all([...paid.values()].map(({ method, network }) => method.paysFee(ctx, network)))
  return offers.includes(true)
}

function commonParameters(request: ChallengeRequest, { realm }: Scope, expiresAt: Date) {
  return {
    realm,
    intent: 'charge',
    expires: expiresAt.toISOString(),
    digest: request.digest,
    description: shortened(request.description),
    header: request.credentialHeader === 'Authorization' ? undefined : request.credentialHeader,
  }
}

function encodedRequest(
  { method, network, token, rawAmount, wallet }: WalletTerms,
  { feePayer }: { readonly feePayer: boolean },
) {
  const { chainId } = network
  const requested = { amount: rawAmount.toString(), currency: token.address, recipient: wallet.address, chainId }
  return encodeMppJson(method.requestOf(requested, token, feePayer))
}

/**
 * Returns canonical JSON of `n`, the challenge's own randomness, `r`, its scope, and `m`, the method that the price is for. None
 * of them needs an escape.
 */
function opaqueOf(ctx: Pick<Ctx, 'random'>, scope: Scope, method: string | undefined): string {
  const nonce = Buffer.from(ctx.random.bytes(nonceBytes)).toString('base64url')
  const priced = method === undefined ? '' : `"m":"${method}",`
  return Buffer.from(`{${priced}"n":"${nonce}","r":"${scope.digest}"}`).toString('base64url')
}

/** Returns the description on one line: a header must not contain control characters. */
function shortened(description: string | undefined): string | undefined {
  const line = description?.replaceAll(/[ \x00-\x1f\x7f]+/g, ' ').trim() ?? ''
  if (line === '') return undefined
  return line.length <= descriptionMax ? line : `${line.slice(0, descriptionMax - 1).toWellFormed()}…`
}
