import {
  type Address,
  checksumAddress,
  type MppChallenge,
  parsePayerSource,
  parseSignature,
  parseTempoPayload,
  proofDigest,
  recoverAddress,
} from '@purser/protocol'
import type { z } from 'zod'
import { answerOf } from '../answer.ts'
import { commonFields, settledAtOnce } from '../new-payment.ts'
import type { Ctx } from '../ports.ts'
import type { VerifiedPayment } from '../schema.ts'
import type { NewPayment } from '../store.ts'
import type { MppPurchase } from './purchase.ts'
import { refusedMpp } from './refused.ts'

/**
 * Verifies a proof, the credential for a price of zero: a signature of the payer's account over the challenge's id. It needs no
 * chain and moves no money. The challenge is its claim, so that a proof buys once. It counts as one of the month's payments.
 * Source: draft-tempo-charge-00, "Proof"; mppx 0.11 `tempo/Proof` for what is signed.
 */
export async function verifyProof(ctx: Ctx, purchase: MppPurchase): Promise<z.input<typeof VerifiedPayment>> {
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
  return answerOf(ctx, payment)
}

/** Returns the account that made the proof; refuses a proof that is invalid or cannot be checked without a chain. */
function proverOf(ctx: Ctx, { payload, source, challenge, network }: MppPurchase): Address {
  const parsed = parseTempoPayload(payload)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: `/payload${parsed.fault.path}` })
  if (parsed.value.type !== 'proof')
    throw refusedMpp('invalid-payload', 'A price of zero is answered with a proof.', { path: '/payload/type' })
  const named = source === undefined ? undefined : parsePayerSource(source)
  if (named?.chainId !== network.chainId)
    throw refusedMpp('verification-failed', `A proof names its account: source is did:pkh:${network.caip2}:<address>.`)
  const account = checksumAddress(named.address, ctx.signatures.keccak)
  refuseUnlessSigned(ctx, { account, challenge, chainId: network.chainId }, parsed.value.signature)
  return account
}

function refuseUnlessSigned(
  ctx: Ctx,
  subject: { readonly account: Address; readonly challenge: MppChallenge; readonly chainId: number },
  signature: string,
): void {
  const { account, challenge, chainId } = subject
  const { recover, keccak } = ctx.signatures
  const signed = parseSignature(signature)
  if (typeof signed === 'string') throw refusedMpp('invalid-payload', 'The signature cannot be read.')
  if (signed.kind !== 'ecdsa')
    throw refusedMpp('verification-failed', 'A proof is signed by the account’s own key; contract accounts have none.')
  const digest = proofDigest({ chainId, account, challengeId: challenge.id, realm: challenge.realm }, keccak)
  if (recoverAddress(recover, keccak, digest, signed) !== account.toLowerCase())
    throw refusedMpp('verification-failed', 'The proof is not signed by the account that source names.')
}
