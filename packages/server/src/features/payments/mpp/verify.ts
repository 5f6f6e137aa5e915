import { decodeMppJson, type MppCredential, type Network, parseMppCredential, sameAddress } from '@purser/protocol'
import type { z } from 'zod'
import type { ReceivingWallet } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { mppMethodNamed } from '../methods/index.ts'
import type { MppMethod, Requested } from '../methods/method.ts'
import type { Ctx } from '../ports.ts'
import { isFree, rawAmountOf, refuseBelowMinimum } from '../price.ts'
import type { VerifiedPayment, VerifyRequest } from '../schema.ts'
import { isExpired, isSent, openMppCredential } from './credential.ts'
import { verifyProof } from './proof.ts'
import type { MppPurchase } from './purchase.ts'
import { refusedMpp } from './refused.ts'
import { isPricedFor } from './scope.ts'
import { type MppTerms, mppTermsOf } from './terms.ts'

/**
 * Verifies an MPP credential and records the payment, once. The challenge must be genuine and must request what would be
 * requested now: a challenge of a cheaper route, of another wallet or of a price that has risen since buys nothing. Money that
 * was already sent for a challenge is credited at that challenge's price.
 */
export async function verifyMpp(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  const terms = mppTermsOf(ctx, wallet, request.price)
  if (terms.length === 0) throw fail('chain-not-supported')
  if (!isPush(request)) refuseTooSmall(ctx, terms)
  const credential = await openMppCredential(ctx, request)
  const purchase =
    isSent(credential) && requestedBy(credential).amount !== '0'
      ? sentPurchase(ctx, request, wallet, credential)
      : purchaseOf(request, wallet, credential, terms)
  if (purchase.rawAmount === 0n) return verifyProof(ctx, purchase)
  return methodOf(credential).verify(ctx, purchase)
}

function isPush({ credential }: VerifyRequest): boolean {
  const parsed = parseMppCredential(credential)
  return parsed.ok && isSent(parsed.value)
}

/** Refuses a price below the minimum first: it is the seller's mistake, whatever the credential contains. */
function refuseTooSmall(ctx: Ctx, terms: readonly MppTerms[]): void {
  for (const { network, token, rawAmount } of terms)
    if (rawAmount !== 0n) refuseBelowMinimum(ctx, network, token, rawAmount)
}

/**
 * Returns what money that was sent for a genuine challenge buys. Its price is the challenge's. If the price has risen
 * since, that price is honored only for the method that the challenge names and until it expires; otherwise a payer
 * could use the challenge of a cheaper method of the address, or keep old challenges, to pay less than the price.
 */
function sentPurchase(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
  credential: MppCredential,
): MppPurchase {
  const { challenge, payload, source } = credential
  const terms = requestedBy(credential)
  const { network, chain } = wallet
  const token = network.tokens.find(({ address }) => sameAddress(address, terms.currency))
  const isHere =
    !network.settlesEip3009 && network.chainId === terms.chainId && sameAddress(terms.recipient, wallet.address)
  if (token === undefined || !isHere)
    throw refusedMpp('invalid-challenge', 'The challenge was made for another wallet, token or network.')
  refuseOtherNetwork(request, network)
  const rawAmount = BigInt(terms.amount)
  const isHonored = isPricedFor(challenge, request.method) && !isExpired(ctx, challenge)
  const isUnderpriced = rawAmount < rawAmountOf(request.price, token) && !isHonored
  const { feePayer } = terms
  return { request, wallet, chain, network, token, rawAmount, challenge, payload, source, feePayer, isUnderpriced }
}

function refuseOtherNetwork(request: VerifyRequest, { caip2 }: Network): void {
  if (request.network !== undefined && request.network !== caip2)
    throw refusedMpp('invalid-challenge', 'The challenge was made for another network.')
}

function purchaseOf(
  request: VerifyRequest,
  wallet: ReceivingWallet,
  credential: MppCredential,
  terms: readonly MppTerms[],
): MppPurchase {
  const { challenge, payload, source } = credential
  const requested = requestedBy(credential)
  if (requested.amount === '0' && !isFree(request.price)) throw tooLittle()
  const term = terms.find(({ method, network, token }) => {
    const isSame = method.name === challenge.method && network.chainId === requested.chainId
    return isSame && sameAddress(token.address, requested.currency)
  })
  if (term === undefined || !sameAddress(requested.recipient, wallet.address))
    throw refusedMpp('invalid-challenge', 'The challenge was made for another wallet, token or network.')
  const { network, token, rawAmount, chain } = term
  refuseOtherNetwork(request, network)
  if (BigInt(requested.amount) < rawAmount) throw tooLittle()
  if (BigInt(requested.amount) > rawAmount)
    throw refusedMpp('invalid-challenge', 'The challenge asks for more than the price is now.')
  const { feePayer } = requested
  return {
    request,
    wallet,
    chain,
    network,
    token,
    rawAmount,
    challenge,
    payload,
    source,
    feePayer,
    isUnderpriced: false,
  }
}

function tooLittle(): Error {
  return refusedMpp('payment-insufficient', 'The challenge asks for less than the price is now.')
}

/**
 * Reads the challenge's `request`. The challenge is genuine, so one that cannot be read was made by another version of this
 * service.
 */
function requestedBy(credential: MppCredential): Requested & { readonly feePayer: boolean } {
  const requested = methodOf(credential).parse(decodeMppJson(credential.challenge.request) ?? {})
  if (requested !== undefined) return requested
  throw refusedMpp('invalid-challenge', 'The challenge requests something that is no longer offered.')
}

/** Returns the method of a challenge that is genuine. */
function methodOf({ challenge }: MppCredential): MppMethod {
  const method = mppMethodNamed(challenge.method)
  if (method === undefined) throw new Error(`a genuine challenge names the method ${challenge.method}`)
  return method
}
