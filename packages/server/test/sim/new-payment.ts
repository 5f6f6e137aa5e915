import type { NewPayment } from '../../src/features/payments/store.ts'
import type { Ctx } from '../../src/modules.ts'
import { newId } from '../../src/platform/ids.ts'
import { type Market, type Purchase, resource } from './purchase.ts'
import { authorizationText } from './token.ts'
import { signatureOf } from './words.ts'

/** A new payment in the form in which our middleware's requests are recorded; its signature was not checked. */
export function newPaymentOf(
  ctx: Ctx,
  { network, token }: Pick<Market, 'network' | 'token'>,
  bought: Pick<Purchase, 'signed' | 'kind' | 'claimKey' | 'entryPoint' | 'challengeId'>,
): NewPayment {
  const { signed, kind, claimKey, entryPoint, challengeId } = bought
  if (signed.form !== 'eip3009' || ctx.actor.kind !== 'api-key') throw new Error('this entry point takes no permits')
  const { from, to, value, validBefore, nonce } = signed.authorization
  const signature = signatureOf(authorizationText(signed.authorization))
  return {
    id: newId('pay', ctx),
    logId: newId('plog', ctx),
    walletId: null,
    apiKeyId: ctx.actor.apiKeyId,
    protocol: 'x402',
    protocolVersion: 2,
    claimKey,
    scheme: 'exact',
    entryPoint: 'verify',
    challengeId: null,
    paymentIdentifier: null,
    paymentFingerprint: null,
    chain: network.name,
    network: network.name,
    token: token.symbol,
    asset: token.address,
    decimals: token.decimals,
    rawAmount: value,
    payer: from,
    payTo: to,
    settlement: {
      kind: 'eip3009',
      from,
      to,
      value: value.toString(),
      validAfter: '0',
      validBefore: validBefore.toString(),
      nonce,
      signature: kind.endsWith('contract')
        ? { kind: 'bytes', signature }
        : { kind: 'ecdsa', v: 27, r: signature, s: signature },
      deployment: null,
    },
    validBefore: new Date(Number(validBefore) * 1_000),
    resource,
    route: resource,
    method: 'GET',
    description: null,
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
    delivery: entryPoint === 'reporting' ? { digest: null, challengeId } : null,
    createdAt: ctx.clock.now(),
  }
}
