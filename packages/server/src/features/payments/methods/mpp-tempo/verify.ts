import {
  type Address,
  isTempo,
  parsePayerSource,
  parseTempoChargeRequest,
  parseTempoPayload,
  tempoChargeRequest,
} from '@purser/protocol'
import type { z } from 'zod'
import type { MppPurchase } from '../../mpp/purchase.ts'
import { refusedMpp } from '../../mpp/refused.ts'
import type { Ctx } from '../../ports.ts'
import type { VerifiedPayment } from '../../schema.ts'
import type { MppMethod } from '../method.ts'
import { payByTransaction } from './pull.ts'
import { payByHash } from './push.ts'
import { sponsorsFees } from './sponsor.ts'
import type { Owed } from './transaction.ts'

/** Method `tempo` with the intent `charge`: a transaction that the payer signed, or one that is on chain already. */
export const tempoCharge: MppMethod = {
  name: 'tempo',
  isOn: isTempo,
  paysFee: sponsorsFees,
  // The service can pay the fee only of a transaction that it sends itself; clients push unless the challenge offers it.
  requestOf: (requested, _, feePayer) =>
    tempoChargeRequest(feePayer ? { ...requested, feePayer, supportedModes: ['pull'] } : requested),
  parse(request) {
    const parsed = parseTempoChargeRequest(request)
    return parsed === undefined ? undefined : { ...parsed, feePayer: parsed.feePayer ?? false }
  },
  isSent: ({ type }) => type === 'hash',
  verify,
}

/**
 * Accepts the payment of a genuine `tempo/charge` challenge: the payer's signed transaction, which is recorded and then broadcast
 * (pull), or the hash of one that is on chain (push). One challenge and one transaction buy once. A failing node is 503 and costs
 * the payer nothing.
 * Source: draft-tempo-charge-00, "Credential payloads".
 */
async function verify(ctx: Ctx, purchase: MppPurchase): Promise<z.input<typeof VerifiedPayment>> {
  const parsed = parseTempoPayload(purchase.payload)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: parsed.fault.path })
  const { value: payload } = parsed
  const owed = owedFor(purchase)
  if (payload.type === 'transaction') return payByTransaction(ctx, { ...purchase, owed }, payload.signature)
  if (payload.type === 'hash') return payByHash(ctx, { ...purchase, owed }, payload.hash)
  throw refusedMpp('invalid-payload', 'a proof pays for nothing but a price of zero')
}

function owedFor(purchase: MppPurchase): Owed {
  const { challenge, network, token, wallet, rawAmount, feePayer } = purchase
  return {
    chainId: network.chainId,
    token: token.address,
    recipient: wallet.address,
    amount: rawAmount,
    realm: challenge.realm,
    challengeId: challenge.id,
    payer: payerOf(purchase),
    feePayer,
  }
}

function payerOf({ source, network }: MppPurchase): Address | undefined {
  if (source === undefined) return undefined
  const payer = parsePayerSource(source)
  if (payer === undefined || payer.chainId !== network.chainId)
    throw refusedMpp('verification-failed', 'the source is not an account of this chain')
  return payer.address
}
