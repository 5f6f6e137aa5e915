import {
  decodePayment,
  hexToBytes,
  networkByX402V1Name,
  parseEcdsa,
  parseMppCredential,
  recoverAddress,
  redemptionHash,
  sameAddress,
  sameDigest,
} from '@purser/protocol'
import { isStub } from '../credential.ts'
import { shownIdentifier } from '../payment-identifier.ts'
import type { Ctx } from '../ports.ts'
import { isSame } from './challenge-id.ts'
import type { RedeemRequest } from './schema.ts'
import type { PaymentKey, RedeemableRow } from './store.ts'

/** The payment that a presented credential identifies, and its secrets that do not appear on chain. */
export interface Shown {
  readonly key: PaymentKey
  /** Secrets shared by the payer and the service; each must have been present at the first verify. */
  readonly secrets: {
    readonly challengeId?: string | undefined
    readonly offerId?: string | undefined
    readonly paymentIdentifier?: string | undefined
    readonly stub?: boolean
  }
}

/**
 * Reads a credential that is presented again; undefined if it names no payment. Everything in a version 1 x402 credential also
 * appears on chain.
 */
export function shownBy({ tenant }: Pick<Ctx, 'tenant'>, request: RedeemRequest): Shown | undefined {
  const { credential, protocol } = request
  if (isStub(credential)) {
    const claimKey = `stub:${tenant.organisationId}:${tenant.environment}:${credential}`
    return { key: { claimKeys: [claimKey] }, secrets: { stub: true } }
  }
  if (protocol === 'mpp') {
    const parsed = parseMppCredential(credential)
    if (!parsed.ok) return undefined
    const challengeId = parsed.value.challenge.id
    return { key: { challengeId }, secrets: { challengeId } }
  }
  const decoded = decodePayment(credential)
  if (!decoded.ok || !('authorization' in decoded.value.payload)) return undefined
  const { authorization } = decoded.value.payload
  if (decoded.value.x402Version === 1) {
    const network = networkByX402V1Name(decoded.value.network)
    const claimKeys = network?.tokens.map(({ address }) => claimKeyOf(network.caip2, address, authorization))
    return claimKeys && { key: { claimKeys }, secrets: {} }
  }
  const { accepted, extensions } = decoded.value
  const offerId = accepted.extra?.challengeId
  return {
    key: { claimKeys: [claimKeyOf(accepted.network, accepted.asset, authorization)] },
    secrets: {
      offerId: typeof offerId === 'string' ? offerId : undefined,
      paymentIdentifier: shownIdentifier(extensions),
    },
  }
}

function claimKeyOf(
  network: string,
  asset: string,
  { from, nonce }: { readonly from: string; readonly nonce: string },
) {
  return `eip3009:${network}:${asset}:${from}:${nonce}`.toLowerCase()
}

/** Whether the request is the one that was paid for and comes from the payer, not from somebody who read the chain. */
export function isProvenBy(ctx: Ctx, row: RedeemableRow, shown: Shown, request: RedeemRequest): boolean {
  return (
    isSameRequest(row, request) &&
    row.protocolVersion !== 1 &&
    (knowsSecret(row, shown) || hasSigned(ctx, row, request))
  )
}

/** Whether the request is the one that was paid for. */
export function isSameRequest({ resource, method, delivery }: RedeemableRow, request: RedeemRequest): boolean {
  if (delivery === null || resource !== request.resource || method !== request.method) return false
  const { digest } = delivery
  return digest === null || request.digest === undefined
    ? (digest ?? undefined) === request.digest
    : sameDigest(digest, request.digest)
}

function knowsSecret(row: RedeemableRow, { secrets }: Shown): boolean {
  const { challengeId, offerId, paymentIdentifier, stub = false } = secrets
  const given = [
    [row.challengeId, challengeId],
    [row.delivery?.challengeId, offerId],
    [row.paymentIdentifier, paymentIdentifier],
  ] as const
  return (
    stub || given.some(([known, shown]) => typeof known === 'string' && shown !== undefined && isSame(known, shown))
  )
}

const signatureAgeMsMax = 300_000

/**
 * Whether the payer signed this redemption. The signature of a contract account cannot be checked without the chain; such
 * payments can be refunded instead.
 */
function hasSigned(ctx: Ctx, { payer, claimKey }: RedeemableRow, request: RedeemRequest): boolean {
  const { signature, method, resource } = request
  if (signature === undefined || payer === null || claimKey === null) return false
  const { signedAt, value } = signature
  if (Math.abs(ctx.clock.now().getTime() - signedAt.getTime()) > signatureAgeMsMax) return false
  const { keccak, recover } = ctx.signatures
  const parsed = parseEcdsa(hexToBytes(value))
  if (typeof parsed === 'string') return false
  const hash = redemptionHash(keccak, { payment: claimKey, method, resource, signedAt: signedAt.toISOString() })
  const signer = recoverAddress(recover, keccak, hash, parsed)
  return signer !== undefined && sameAddress(signer, payer)
}
