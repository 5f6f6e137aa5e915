import {
  chargeNonce,
  type EvmAuthorizationPayload,
  type Expected,
  evmChargeRequest,
  type PaymentPayloadV2,
  parseEvmChargeRequest,
  parseEvmPayload,
  parsePayerSource,
  requirementsV2,
  sameAddress,
} from '@purser/protocol'
import type { z } from 'zod'
import { isProblem } from '../../../../platform/errors.ts'
import { type CheckedCredential, checkDecodedPayment } from '../../credential.ts'
import { refusedMpp } from '../../errors.ts'
import { newPayment } from '../../new-payment.ts'
import type { Ctx, Funds } from '../../ports.ts'
import { responseOf } from '../../record.ts'
import type { VerifiedPayment } from '../../schema.ts'
import type { NewPayment } from '../../store.ts'
import type { MppMethod, MppPurchase } from '../method.ts'
import { refuseByChain, refuseDomainMismatch, resolveDeployment } from '../x402-exact/verify.ts'

/** Method `evm` with the intent `charge`: an EIP-3009 authorization, settled as one of x402 is. */
export const evmCharge: MppMethod = {
  name: 'evm',
  isOn: ({ settlesEip3009 }) => settlesEip3009,
  paysFee: async () => false,
  requestOf: (requested, { decimals }) => evmChargeRequest({ ...requested, decimals }),
  parse(request) {
    const parsed = parseEvmChargeRequest(request)
    return parsed === undefined ? undefined : { ...parsed, feePayer: false }
  },
  isSent: () => false,
  verify,
}

/**
 * Verifies an `evm/charge` by EIP-3009 authorization. Its nonce is derived from the challenge, so that it pays for nothing else.
 * From there on it is handled as an x402 authorization: the same checks, claim and settlement.
 * Source: draft-evm-charge-00, "Authorization payload"; mppx 0.11 `evm/server/Charge`.
 */
async function verify(ctx: Ctx, purchase: MppPurchase): Promise<z.input<typeof VerifiedPayment>> {
  const authorization = authorizationOf(ctx, purchase)
  const judged = await inMppTerms(() => judge(ctx, purchase, authorization))
  await ctx.recordPayment({ ctx, ...judged })
  return responseOf(ctx, judged.payment)
}

function authorizationOf(
  { signatures }: Pick<Ctx, 'signatures'>,
  { challenge, payload, source, network, rawAmount }: MppPurchase,
): EvmAuthorizationPayload {
  const parsed = parseEvmPayload(payload)
  if (!parsed.ok) throw refusedMpp(parsed.fault.reason, parsed.fault.message, { path: `/payload${parsed.fault.path}` })
  const authorization = parsed.value
  if (authorization.nonce.toLowerCase() !== chargeNonce(challenge.id, challenge.realm, signatures.keccak))
    throw refusedMpp('verification-failed', 'The authorization’s nonce is not the one of the challenge.')
  const named = source === undefined ? undefined : parsePayerSource(source)
  const isPayer = named?.chainId === network.chainId && sameAddress(named.address, authorization.from)
  if (source !== undefined && !isPayer)
    throw refusedMpp('verification-failed', 'The credential’s source is not the account that signed.')
  if (BigInt(authorization.value) < rawAmount)
    throw refusedMpp('payment-insufficient', 'The authorized amount is less than the challenge requires.')
  return authorization
}

type Paid = { readonly payment: NewPayment; readonly funds: Funds }

async function judge(ctx: Ctx, purchase: MppPurchase, signed: EvmAuthorizationPayload): Promise<Paid> {
  const { request, wallet, network, token, rawAmount, challenge } = purchase
  const expected = { network, token, rawAmount, payTo: wallet.address }
  const found = checkDecodedPayment(ctx, asX402(expected, signed), [token], () => expected)
  await refuseDomainMismatch(ctx, network, token)
  const judged: CheckedCredential = { ...found, verdict: await resolveDeployment(ctx, network, found.verdict) }
  const payment: NewPayment = {
    ...newPayment(ctx, request, wallet, judged),
    protocolVersion: null,
    scheme: 'charge',
    challengeId: challenge.id,
  }
  return { payment, funds: await refuseByChain(ctx, network, judged, payment) }
}

/** Returns the authorization as x402 carries it, with the service's own requirements as the accepted ones. */
function asX402(
  expected: Expected,
  { type: _, signature, ...authorization }: EvmAuthorizationPayload,
): PaymentPayloadV2 {
  const unused = { resource: '', description: '', mimeType: '', maxTimeoutSeconds: 0 }
  return {
    x402Version: 2,
    accepted: requirementsV2({ ...expected, ...unused }),
    payload: { signature, authorization },
  }
}

/** Turns refusals of x402 into refusals of MPP, with x402's reason in the message. */
async function inMppTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isProblem(error, 'payment-verification-failed')) throw error
    const { reason, ...members } = error.members
    throw refusedMpp('verification-failed', `The authorization was refused: ${String(reason)}.`, members)
  }
}
