import {
  decodeMppJson,
  type MppCredential,
  parseEvmChargeRequest,
  parseTempoChargeRequest,
  sameAddress,
} from '@purser/protocol'
import type { z } from 'zod'
import type { Ctx } from '../../../platform/ctx.ts'
import type { ReceivingWallet } from '../../wallets/index.ts'
import { fail } from '../errors.ts'
import { isFree, refuseBelowMinimum } from '../price.ts'
import type { VerifiedPayment, VerifyRequest } from '../schema.ts'
import { verifyTempoCharge } from '../tempo/verify.ts'
import { openMppCredential } from './credential.ts'
import { verifyEvmCharge } from './evm-charge.ts'
import { verifyProof } from './proof.ts'
import type { MppPurchase } from './purchase.ts'
import { refusedMpp } from './refused.ts'
import { type MppTerms, mppTermsOf } from './terms.ts'

/**
 * Verifies an MPP credential and records the payment, once. The challenge must be ours and must ask for what would be asked
 * for now: a challenge of a cheaper route, of another wallet or of a price that has risen since buys nothing.
 */
export async function verifyMpp(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  const terms = mppTermsOf(ctx, wallet, request.price)
  if (terms.length === 0) throw fail('chain-not-supported')
  refuseTooSmall(ctx, terms)
  const credential = await openMppCredential(ctx, request)
  const purchase = purchaseOf(request, wallet, credential, terms)
  if (purchase.rawAmount === 0n) return verifyProof(ctx, purchase)
  return credential.challenge.method === 'tempo' ? verifyTempoCharge(ctx, purchase) : verifyEvmCharge(ctx, purchase)
}

/** A price below the minimum is the seller's mistake whatever the credential says, so it is refused first. */
function refuseTooSmall(ctx: Ctx, terms: readonly MppTerms[]): void {
  for (const { network, token, rawAmount } of terms)
    if (rawAmount !== 0n) refuseBelowMinimum(ctx, network, token, rawAmount)
}

function purchaseOf(
  request: VerifyRequest,
  wallet: ReceivingWallet,
  credential: MppCredential,
  terms: readonly MppTerms[],
): MppPurchase {
  const { challenge, payload, source } = credential
  const asked = askedBy(credential)
  if (asked.amount === '0' && !isFree(request.price)) throw tooLittle()
  const term = terms.find(({ method, network, token }) => {
    const isSame = method === challenge.method && network.chainId === asked.chainId
    return isSame && sameAddress(token.address, asked.currency)
  })
  if (term === undefined || !sameAddress(asked.recipient, wallet.address))
    throw refusedMpp('invalid-challenge', 'The challenge was made for another wallet, token or network.')
  const { network, token, rawAmount, chain } = term
  if (request.network !== undefined && request.network !== network.caip2)
    throw refusedMpp('invalid-challenge', 'The challenge was made for another network.')
  if (BigInt(asked.amount) < rawAmount) throw tooLittle()
  if (BigInt(asked.amount) > rawAmount)
    throw refusedMpp('invalid-challenge', 'The challenge asks for more than the price is now.')
  const { feePayer } = asked
  return { request, wallet, chain, network, token, rawAmount, challenge, payload, source, feePayer }
}

function tooLittle(): Error {
  return refusedMpp('payment-insufficient', 'The challenge asks for less than the price is now.')
}

interface Asked {
  readonly amount: string
  readonly currency: `0x${string}`
  readonly recipient: `0x${string}`
  readonly chainId: number
  readonly feePayer: boolean
}

/** What the challenge's `request` asks for. It is genuine by now, so one that cannot be read was made by another version of us. */
function askedBy({ challenge }: MppCredential): Asked {
  const object = decodeMppJson(challenge.request) ?? {}
  const tempo = challenge.method === 'tempo' ? parseTempoChargeRequest(object) : undefined
  if (tempo !== undefined) return { ...tempo, feePayer: tempo.feePayer ?? false }
  const evm = challenge.method === 'evm' ? parseEvmChargeRequest(object) : undefined
  if (evm !== undefined) return { ...evm, feePayer: false }
  throw refusedMpp('invalid-challenge', 'The challenge asks for something that is not asked for any more.')
}
