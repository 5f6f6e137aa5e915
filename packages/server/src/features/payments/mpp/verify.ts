import {
  type Address,
  challengeBinding,
  checksumAddress,
  decodeMppJson,
  type MppChallenge,
  type MppCredential,
  type Network,
  parseMppCredential,
  parsePayerSource,
  parseSignature,
  parseTempoPayload,
  proofDigest,
  recoverAddress,
  sameAddress,
  sameDigest,
} from '@purser/protocol'
import type { z } from 'zod'
import { instantOf } from '../../../platform/clock.ts'
import { equalInConstantTime } from '../../../platform/constant-time.ts'
import type { ReceivingWallet } from '../../wallets/index.ts'
import { isFree, rawAmountOf, refuseBelowMinimum } from '../credential.ts'
import { fail, refusedMpp } from '../errors.ts'
import { mppMethodNamed, mppMethodNames } from '../methods/index.ts'
import type { MppMethod, MppPurchase, Requested } from '../methods/method.ts'
import { commonFields, settledAtOnce } from '../new-payment.ts'
import type { Ctx } from '../ports.ts'
import { responseOf } from '../record.ts'
import type { VerifiedPayment, VerifyRequest } from '../schema.ts'
import type { NewPayment } from '../store.ts'
import { isInScope, isPricedFor, type MppTerms, mppTermsOf } from './terms.ts'

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
  await ctx.gasPrices.recentReads(terms.map(({ network }) => network))
  const parsed = parseMppCredential(request.credential)
  if (!parsed.ok || !isSent(parsed.value)) refuseTooSmall(ctx, terms)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: parsed.fault.path })
  const credential = parsed.value
  await refuseUnlessGenuine(ctx, request, credential)
  const requested = requestedBy(credential)
  const purchase =
    isSent(credential) && requested.amount !== '0'
      ? sentPurchase(ctx, request, wallet, { ...credential, requested })
      : purchaseOf(request, wallet, { ...credential, requested }, terms)
  if (purchase.rawAmount === 0n) return verifyProof(ctx, purchase)
  return methodOf(credential).verify(ctx, purchase)
}

type Terms = Requested & { readonly feePayer: boolean }

/** A genuine credential with what its challenge requests. */
type Opened = MppCredential & { readonly requested: Terms }

/** Refuses a price below the minimum first: it is the seller's mistake, whatever the credential contains. */
function refuseTooSmall(ctx: Pick<Ctx, 'gasPrices' | 'settleMicroUsdMin'>, terms: readonly MppTerms[]): void {
  for (const { network, token, rawAmount } of terms)
    if (rawAmount !== 0n) refuseBelowMinimum(ctx, network, token, rawAmount)
}

/**
 * Returns what money that was sent for a genuine challenge buys. Its price is the challenge's. If the price has risen
 * since, that price is honored only for the resource and the method that the challenge names and until it expires; otherwise
 * a payer could use the challenge of a cheaper resource or method, or keep old challenges, to pay less than the price.
 */
function sentPurchase(
  ctx: Pick<Ctx, 'clock'>,
  request: VerifyRequest,
  wallet: ReceivingWallet,
  { challenge, payload, source, requested: terms }: Opened,
): MppPurchase {
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
  { challenge, payload, source, requested }: Opened,
  terms: readonly MppTerms[],
): MppPurchase {
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
    throw refusedMpp('invalid-challenge', 'The challenge requires more than the current price.')
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
  return refusedMpp('payment-insufficient', 'The challenge requires less than the current price.')
}

/**
 * Reads the challenge's `request`. The challenge is genuine, so one that cannot be read was made by another version of this
 * service.
 */
function requestedBy(credential: MppCredential): Terms {
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

/**
 * Refuses a credential unless its challenge is genuine for this request: made under a valid secret, for this organisation
 * and environment, not expired, for this resource and this body; cheapest checks first. The caller checks
 * price and wallet. The hash of a payment that was already sent is accepted after the challenge has expired, since its money may
 * have arrived.
 */
async function refuseUnlessGenuine(
  ctx: Pick<Ctx, 'clock' | 'mppSecrets' | 'tenant'>,
  request: VerifyRequest,
  credential: MppCredential,
): Promise<void> {
  const { challenge } = credential
  if (!isKnownMethod(challenge))
    throw refusedMpp('method-unsupported', `Pay with ${mppMethodNames.map((name) => `${name}/charge`).join(' or ')}.`)
  if (!(await isGenuine(ctx, credential)))
    throw refusedMpp('invalid-challenge', 'The challenge was not issued by this service, or it was changed.')
  if (!isSent(credential) && isExpired(ctx, challenge))
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
}

function isKnownMethod({ method, intent }: MppChallenge): boolean {
  return intent === 'charge' && mppMethodNamed(method) !== undefined
}

/**
 * Whether the service made this challenge, under a valid secret, or under a retired one if the challenge has expired and the money was already sent. Texts are compared, not the bytes that they encode: the last character of an id has
 * two unused bits, so a payer could otherwise present one challenge under four ids.
 */
async function isGenuine(
  ctx: Pick<Ctx, 'clock' | 'mppSecrets' | 'tenant'>,
  credential: MppCredential,
): Promise<boolean> {
  const { challenge } = credential
  const { all, retired } = await ctx.mppSecrets.macs(ctx.tenant)
  const macs = isSent(credential) && isExpired(ctx, challenge) ? [...all, ...retired] : all
  const binding = challengeBinding(challenge)
  return macs.some((mac) => equalInConstantTime(mac(binding), challenge.id))
}

function isExpired(ctx: Pick<Ctx, 'clock'>, { expires }: MppChallenge): boolean {
  return expires === undefined || instantOf(expires) <= ctx.clock.now()
}

/** Whether the payer sent the money before presenting the credential. */
function isSent({ challenge, payload }: MppCredential): boolean {
  return mppMethodNamed(challenge.method)?.isSent(payload) === true
}

function isForBody({ digest }: MppChallenge, given: string | undefined): boolean {
  if (digest === undefined || given === undefined) return digest === given
  return sameDigest(digest, given)
}

/**
 * Verifies a proof, the credential for a price of zero: a signature of the payer's account over the challenge's id. It needs no
 * chain and moves no money. The challenge is its claim, so that a proof buys once. It has a monthly count of its own.
 * Source: draft-tempo-charge-00, "Proof"; mppx 0.11 `tempo/Proof` for what is signed.
 */
async function verifyProof(ctx: Ctx, purchase: MppPurchase): Promise<z.input<typeof VerifiedPayment>> {
  const { request, wallet, network, token, challenge, chain } = purchase
  const payer = proverOf(ctx, purchase)
  const common = commonFields(ctx, request, wallet, token)
  const payment: NewPayment = {
    ...common,
    chain,
    network: network.name,
    protocolVersion: null,
    claimKey: `proof:${challenge.id}`,
    challengeId: challenge.id,
    scheme: 'charge',
    rawAmount: 0n,
    payer,
    ...settledAtOnce(common.createdAt),
  }
  await ctx.recordPayment({ ctx, payment })
  return responseOf(ctx, payment)
}

/** Returns the account that made the proof; refuses a proof that is invalid or cannot be checked without a chain. */
function proverOf(ctx: Pick<Ctx, 'signatures'>, { payload, source, challenge, network }: MppPurchase): Address {
  const parsed = parseTempoPayload(payload)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: `/payload${parsed.fault.path}` })
  if (parsed.value.type !== 'proof')
    throw refusedMpp('invalid-payload', 'A price of zero requires a payload of type proof.', { path: '/payload/type' })
  const named = source === undefined ? undefined : parsePayerSource(source)
  if (named?.chainId !== network.chainId)
    throw refusedMpp('verification-failed', `A proof names its account: source is did:pkh:${network.caip2}:<address>.`)
  const account = checksumAddress(named.address, ctx.signatures.keccak)
  refuseUnlessSigned(ctx, { account, challenge, chainId: network.chainId }, parsed.value.signature)
  return account
}

function refuseUnlessSigned(
  ctx: Pick<Ctx, 'signatures'>,
  subject: { readonly account: Address; readonly challenge: MppChallenge; readonly chainId: number },
  signature: string,
): void {
  const { account, challenge, chainId } = subject
  const { recover, keccak } = ctx.signatures
  const signed = parseSignature(signature)
  if (typeof signed === 'string') throw refusedMpp('invalid-payload', 'The signature cannot be read.')
  if (signed.kind !== 'ecdsa')
    throw refusedMpp(
      'verification-failed',
      'A proof must be signed by the account’s own key; contract accounts cannot sign proofs.',
    )
  const digest = proofDigest({ chainId, account, challengeId: challenge.id, realm: challenge.realm }, keccak)
  if (recoverAddress(recover, keccak, digest, signed) !== account.toLowerCase())
    throw refusedMpp('verification-failed', 'The proof is not signed by the account that source names.')
}
