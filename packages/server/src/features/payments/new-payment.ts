import { hash } from 'node:crypto'
import {
  canonicalJson,
  formatAmount,
  type Hex,
  type JsonObject,
  type Network,
  type PaymentPayload,
  requireNetwork,
  type TokenInfo,
} from '@purser/protocol'
import type { MppMacs } from '../../custody/index.ts'
import { instantOf } from '../../platform/clock.ts'
import { equalInConstantTime } from '../../platform/constant-time.ts'
import { callerId } from '../../platform/ctx.ts'
import { logIdOf, newId } from '../../platform/ids.ts'
import { parseUrl } from '../../platform/parse-url.ts'
import { gasOf, gasOfAuthorization } from '../relayer/index.ts'
import type { ReceivingWallet } from '../wallets/index.ts'
import { type CheckedCredential, type GoodVerdict, gasPaidBy, refused } from './credential.ts'
import type { PaymentDelivery } from './delivery/store.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import { findFingerprint } from './record-store.ts'
import type { VerifyRequest } from './schema.ts'
import type { NewPayment, SettlementOf, StoredAuthorization, StoredSettlement } from './store.ts'

/** Returns the one key for an EIP-3009 authorization, whatever the protocol or the entry point. */
export function claimKeyOf(
  network: Network,
  token: Pick<TokenInfo, 'address'>,
  signed: { readonly payer: string; readonly authorization: Pick<GoodVerdict['authorization'], 'nonce'> },
): string {
  const { payer, authorization } = signed
  return `eip3009:${network.caip2}:${token.address}:${payer}:${authorization.nonce}`.toLowerCase()
}

/** Returns the claim key of a payment that is proven by a transaction that contains only this payment. */
export function transactionClaim(network: Network, hash: Hex): string {
  return `tx:${network.caip2}:${hash.toLowerCase()}`
}

/**
 * Returns the claim key of a payment that is proven by one log of a transaction, identified by the log's index: a transaction may pay for several
 * things. The payment is not recorded if the transaction was recorded as a whole. The reverse is refused too: both name the same challenge.
 */
export function transferClaim(network: Network, hash: Hex, position: number): string {
  return `${transactionClaim(network, hash)}:${position}`
}

/** Returns the row of an unsettled payment by a signed EIP-3009 authorization. */
export function newPayment(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'gasPrices' | 'random' | 'settleMicroUsdMin'>,
  request: VerifyRequest,
  wallet: ReceivingWallet,
  judged: CheckedCredential,
): NewPayment {
  const { authorization, payer } = judged.verdict
  return {
    ...commonFields(ctx, request, wallet, judged.token),
    protocolVersion: judged.payload.x402Version,
    claimKey: claimKeyOf(wallet.network, judged.token, judged.verdict),
    scheme: 'exact',
    rawAmount: authorization.value,
    payer,
    settlement: storedAuthorization(ctx, wallet.network, judged),
    validBefore: expiryOf(authorization.validBefore),
    status: 'verified',
    txHash: null,
    settlingAt: null,
    settledAt: null,
  }
}

/** Returns the parts of a signed authorization that settlement needs. */
export function storedAuthorization(
  ctx: Pick<Ctx, 'gasPrices' | 'settleMicroUsdMin'>,
  network: Network,
  { token, verdict: { authorization, signature, deployment } }: Pick<CheckedCredential, 'token' | 'verdict'>,
): StoredAuthorization {
  const stored: StoredAuthorization = {
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
  if (signature.kind === 'ecdsa') return stored
  const gas = gasPaidBy(ctx, { network, token, raw: authorization.value }, gasOfAuthorization(stored))
  return gas === undefined ? stored : { ...stored, gas }
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
export function commonFields(
  ctx: Pick<Ctx, 'actor' | 'clock' | 'random'>,
  request: VerifyRequest,
  wallet: ReceivingWallet,
  token: TokenInfo,
) {
  const id = newId('pay', ctx)
  return {
    id,
    logId: logIdOf(id),
    walletId: wallet.id,
    apiKeyId: callerId(ctx.actor),
    entryPoint: 'verify',
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
function deliveryOf({ reportsDelivery, digest }: VerifyRequest): PaymentDelivery | null {
  return reportsDelivery ? { digest: digest ?? null, challengeId: null } : null
}

/** Most bytes of a route. An index contains it, and PostgreSQL refuses index rows of more than 2,704 bytes. */
export const routeBytesMax = 2_048

/**
 * Returns the address of the paid route: origin and path without the query, which may contain a caller's private input. It is ASCII: each other
 * character of the resource becomes up to nine. Null if it is too long.
 */
export function routeOf(resource: string | undefined): string | null {
  const url = resource === undefined ? undefined : parseUrl(resource)
  if (url === undefined) return null
  const route = `${url.origin}${url.pathname}`
  return route.length > routeBytesMax ? null : route
}

/** The extension's key in `extensions` (x402 extension payment-identifier). */
export const paymentIdentifierKey = 'payment-identifier'

const identifierPattern = /^[A-Za-z0-9_-]{16,128}$/

const extension: JsonObject = {
  info: { required: false },
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      required: { type: 'boolean' },
      id: { type: 'string', minLength: 16, maxLength: 128, pattern: '^[a-zA-Z0-9_-]+$' },
    },
    required: ['required'],
  },
}

/** Returns the extension by which a version 2 challenge lets clients name their payments. Source: @x402/extensions 2.27.0. */
export function paymentIdentifierExtension(): JsonObject {
  return { [paymentIdentifierKey]: extension }
}

/** The columns of a payment that store its payment identifier. */
export interface PaymentName {
  readonly paymentIdentifier: string | null
  readonly paymentFingerprint: string | null
}

/**
 * Reads the payment identifier, and refuses one with which this payer already named other signed parts: 409 `payment-identifier-conflict`. The
 * identifier grants nothing by itself: the same payment under the same identifier is still used. Throws the protocol's
 * `invalid_payload` if it has another shape, or is missing where the challenge requires one.
 */
export async function namePayment(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  extensions: JsonObject | undefined,
  { payer, fingerprint }: { readonly payer: string; readonly fingerprint: string },
): Promise<PaymentName> {
  const paymentIdentifier = identifierIn(extensions)
  if (paymentIdentifier === undefined) return { paymentIdentifier: null, paymentFingerprint: fingerprint }
  const known = await findFingerprint(ctx.db, ctx.tenant, { payer, paymentIdentifier })
  if (known !== undefined && known !== fingerprint) throw fail('payment-identifier-conflict')
  return { paymentIdentifier, paymentFingerprint: fingerprint }
}

/** Returns SHA-256 over the canonical JSON of what the payer signed and its signature, in hex. */
export function fingerprintOf(signedParts: unknown): string {
  return hash('sha256', canonicalJson(signedParts), 'hex')
}

function identifierIn(extensions: JsonObject | undefined): string | undefined {
  const info = memberOf(memberOf(extensions, paymentIdentifierKey), 'info')
  const id = memberOf(info, 'id')
  if (id === undefined || id === null) {
    if (memberOf(info, 'required') !== true) return undefined
    throw refused('invalid_payload', { message: 'a payment identifier is required and none was given' })
  }
  if (typeof id === 'string' && identifierPattern.test(id)) return id
  throw refused('invalid_payload', {
    message: 'the payment identifier must be 16 to 128 letters, digits, hyphens or underscores',
  })
}

/** Returns the payment's identifier if it has a valid form. */
export function shownIdentifier(extensions: JsonObject | undefined): string | undefined {
  const id = memberOf(memberOf(memberOf(extensions, paymentIdentifierKey), 'info'), 'id')
  return typeof id === 'string' && identifierPattern.test(id) ? id : undefined
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

const randomBytes = 16
const challengeIdPattern = /^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}$/

/**
 * Returns the id that an x402 offer carries in `extra.challengeId`: 128 random bits and their MAC. The payer's client
 * returns it with the payment, and it never appears on chain, so a caller that presents it is the payer. It has 66
 * characters, a multiple of three, so that a client of the service can replace it inside base64 text.
 */
export function mintChallengeId({ current }: MppMacs, { random }: Pick<Ctx, 'random'>): string {
  const drawn = Buffer.from(random.bytes(randomBytes)).toString('base64url')
  return `${drawn}.${current(bindingOf(drawn))}`
}

/** Returns the `extra.challengeId` of a payment if this service made it; null if there is none or the payer invented it. */
export async function challengeIdOf(
  ctx: Pick<Ctx, 'mppSecrets' | 'tenant'>,
  payment: PaymentPayload,
): Promise<string | null> {
  const named = payment.x402Version === 2 ? payment.accepted.extra?.challengeId : undefined
  if (typeof named !== 'string' || !challengeIdPattern.test(named)) return null
  const { all } = await ctx.mppSecrets.macs(ctx.tenant)
  const [drawn = '', mac = ''] = named.split('.')
  return all.some((macOf) => equalInConstantTime(macOf(bindingOf(drawn)), mac)) ? named : null
}

/** Binds the id to a realm that no MPP challenge can have, because an MPP realm is a host name. */
function bindingOf(drawn: string): string {
  return `x402 offer|${drawn}`
}

/** The rules that depend on how a payment is settled. */
interface SettlementRules<S> {
  /** Most gas that one payment costs the operator, without the base cost of its transaction. */
  readonly gasOf: (settlement: S) => bigint
  /** The reason for a payment that ended because its signature expired. */
  readonly expiredReason: string
}

type Kind = StoredSettlement['kind']

/** The rules of each kind of settlement. A method that settles in a new way adds a line. */
const rules: { readonly [K in Kind]: SettlementRules<SettlementOf<K>> } = {
  eip3009: {
    gasOf: gasOfAuthorization,
    expiredReason: 'invalid_exact_evm_payload_authorization_valid_before',
  },
  permit2: { gasOf, expiredReason: 'permit2_deadline_expired' },
  tempo: { gasOf: ({ sponsoredGas }) => BigInt(sponsoredGas), expiredReason: 'transaction_expired' },
}

/** Returns the gas that is charged to the day's budget for a payment. */
function gasOfSettlement<K extends Kind>(settlement: SettlementOf<K>): bigint {
  return rules[settlement.kind].gasOf(settlement)
}

/** Returns what recording a payment reserves of the day's gas, in billionths of a US dollar. */
export function gasReservedBy(
  { gasPrices }: Pick<Ctx, 'gasPrices'>,
  { network, settlement }: Pick<NewPayment, 'network' | 'settlement'>,
): bigint {
  return settlement === null ? 0n : gasPrices.costOf(requireNetwork(network), gasOfSettlement(settlement))
}

/** Returns the protocol's reason for a payment whose signature expired. */
export function expiredReasonOf({ kind }: Pick<StoredSettlement, 'kind'>): string {
  return rules[kind].expiredReason
}

/** Returns the members that all events of a payment have. */
export function paymentPayload(
  payment: Pick<NewPayment, 'id' | 'walletId' | 'rawAmount' | 'decimals' | 'token' | 'chain' | 'payer'>,
) {
  return {
    paymentId: payment.id,
    walletId: payment.walletId,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    token: payment.token,
    chain: payment.chain,
    payer: payment.payer,
  }
}
