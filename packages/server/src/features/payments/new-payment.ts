import type { Network, TokenInfo } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { callerId } from '../../platform/ctx.ts'
import { logIdOf, newId } from '../../platform/ids.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import type { GoodVerdict, JudgedCredential } from './credential.ts'
import type { Delivery } from './delivery/store.ts'
import type { Ctx } from './ports.ts'
import type { VerifyRequest } from './schema.ts'
import type { NewPayment, StoredAuthorization } from './store.ts'

/** Returns the one key for an EIP-3009 authorization, whatever the protocol or the entry point (decisions.md, section 3). */
export function claimKeyOf(
  network: Network,
  token: TokenInfo,
  signed: { readonly payer: string; readonly authorization: Pick<GoodVerdict['authorization'], 'nonce'> },
): string {
  const { payer, authorization } = signed
  return `eip3009:${network.caip2}:${token.address}:${payer}:${authorization.nonce}`.toLowerCase()
}

/** Returns the row of an unsettled payment by a signed EIP-3009 authorization. */
export function newPayment(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
  judged: JudgedCredential,
): NewPayment {
  const { authorization, payer } = judged.verdict
  return {
    ...commonFields(ctx, request, wallet, judged.token),
    protocolVersion: judged.payload.x402Version,
    claimKey: claimKeyOf(wallet.network, judged.token, judged.verdict),
    scheme: 'exact',
    rawAmount: authorization.value,
    payer,
    settlement: storedAuthorization(judged.verdict),
    validBefore: expiryOf(authorization.validBefore),
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
  }
}

/** Returns the parts of a signed authorization that settlement needs. */
export function storedAuthorization({ authorization, signature, deployment }: GoodVerdict): StoredAuthorization {
  return {
    kind: 'eip3009',
    from: authorization.from,
    to: authorization.to,
    value: authorization.value.toString(),
    validAfter: authorization.validAfter.toString(),
    validBefore: authorization.validBefore.toString(),
    nonce: authorization.nonce,
    signature: storedSignature(signature),
    deployment: deployment === undefined ? null : { factory: deployment.factory, calldata: deployment.factoryCalldata },
  }
}

/** Returns only the signature's own fields, without other members of the verdict. */
function storedSignature(signature: GoodVerdict['signature']): StoredAuthorization['signature'] {
  if (signature.kind === 'bytes') return { kind: 'bytes', signature: signature.signature }
  return { kind: 'ecdsa', v: signature.v, r: signature.r, s: signature.s }
}

const latestMs = 253_402_300_799_000n

/** Returns when the authorization expires, capped at the year 9999: payers may sign without an end. */
export function expiryOf(validBeforeSeconds: bigint): Date {
  const ms = validBeforeSeconds * 1000n
  return instantOf(Number(ms < latestMs ? ms : latestMs))
}

/** Returns the fields that all payments verified by the service's own middleware have in common. */
export function commonFields(ctx: Ctx, request: VerifyRequest, wallet: ReceivingWallet, token: TokenInfo) {
  const id = newId('pay', ctx)
  return {
    id,
    logId: logIdOf(id),
    walletId: wallet.id,
    apiKeyId: callerId(ctx.actor),
    door: 'verify',
    challengeId: null,
    paymentIdentifier: null,
    paymentFingerprint: null,
    protocol: request.protocol,
    chain: wallet.chain,
    network: wallet.network.name,
    token: token.symbol,
    asset: token.address,
    decimals: token.decimals,
    payTo: wallet.address,
    resource: request.resource ?? null,
    route: routeOf(request.resource),
    method: request.method ?? null,
    description: request.description ?? null,
    delivery: deliveryOf(request),
    createdAt: ctx.clock.now(),
  } as const
}

/** Returns the fields of a payment that is settled when it is recorded, because no transaction moves its money. */
export function settledAtOnce(at: Date) {
  return {
    settlement: null,
    validBefore: null,
    status: 'settled',
    txHash: null,
    settlingAt: null,
    settledAt: at,
  } as const
}

/** Returns what a redemption needs, if the caller reports delivery. An x402 offer's id is added once it is authenticated. */
function deliveryOf({ reportsDelivery, digest }: VerifyRequest): Delivery | null {
  return reportsDelivery ? { digest: digest ?? null, challengeId: null } : null
}

/** Returns the address of the paid route: origin and path without the query, which may contain a caller's private input. */
export function routeOf(resource: string | undefined): string | null {
  if (resource === undefined) return null
  const { origin, pathname } = new URL(resource)
  return `${origin}${pathname}`
}
