import { formatAmount, type Network, reasonOfRevert, type TokenInfo } from '@purser/protocol'
import type { z } from 'zod'
import type { AuthorizationFacts } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { newId, type PaymentId } from '../../platform/ids.ts'
import { getPayableWallet, type ReceivingWallet } from '../wallets/index.ts'
import { type GoodVerdict, isStub, type JudgedCredential, judgeCredential, refused } from './credential.ts'
import { fail } from './errors.ts'
import { payableTokens, rawPrice, refuseBelowMinimum } from './price.ts'
import type { VerifiedPayment, VerifyRequest } from './schema.ts'
import { findPayment, listTakenClaims, type NewPayment, type PaymentRow, type StoredAuthorization } from './store.ts'
import { refuseStrangeToken } from './token-domain.ts'

/**
 * Verifies a credential and records the payment, once. Cheapest refusals first; what the chain says is asked together
 * with other requests; the row, its event and the month's count commit together. A credential that was used is 409
 * whatever else is wrong with it by now, since the first use is why.
 */
export async function verifyPayment(ctx: Ctx, request: VerifyRequest): Promise<z.input<typeof VerifiedPayment>> {
  const wallet = await getPayableWallet(ctx, request.walletId)
  if (request.network !== undefined && request.network !== wallet.network.caip2)
    throw refused('invalid_exact_evm_network_mismatch')
  if (isStub(request.credential)) return recordStub(ctx, request, wallet)
  if (request.protocol === 'mpp') throw refused('unsupported_scheme')

  const tokens = payableTokens(wallet)
  const signed = judgeCredential(ctx, request.credential, tokens, (token) => {
    const rawAmount = rawPrice(request.price, token)
    refuseBelowMinimum(ctx, rawAmount, token)
    return { network: wallet.network, token, rawAmount, payTo: wallet.address }
  })
  await refuseStrangeToken(ctx, wallet.network, signed.token)
  const judged = { ...signed, verdict: await withAccountAsItIs(ctx, wallet.network, signed.verdict) }
  const payment = newPayment(ctx, request, wallet, judged)
  await refuseByChain(ctx, wallet.network, judged, payment)
  await ctx.recordPayment({ ctx, payment })
  return answerOf(ctx, payment)
}

/** The answer that verifying this payment gives, for a repeat whose first answer was never sent. */
export async function verifiedAnswer(ctx: Ctx, paymentId: string): Promise<z.input<typeof VerifiedPayment>> {
  const row = await findPayment(ctx.db, ctx.tenant, paymentId as PaymentId)
  if (row === undefined) throw fail('payment-not-found')
  return answerOf(ctx, row)
}

function answerOf(
  ctx: Ctx,
  payment: Pick<
    PaymentRow,
    'id' | 'protocol' | 'rawAmount' | 'decimals' | 'token' | 'payer' | 'settledAt' | 'status'
  > & { txHash?: string | null },
): z.input<typeof VerifiedPayment> {
  return {
    valid: true,
    paymentId: payment.id,
    protocol: payment.protocol,
    amount: formatAmount(payment.rawAmount, payment.decimals),
    coin: payment.token,
    payer: payment.payer,
    txHash: payment.txHash ?? null,
    settledAt: payment.settledAt,
    settlementPending: payment.status === 'verified' || payment.status === 'settling',
    settlementToken: ctx.settlementTokens.mint(payment.id),
  }
}

/**
 * An account to come is deployed only by a factory that the operator lists, since its code runs at the settler's cost. One that is
 * there already needs no deployment, whatever its wrapper names.
 */
async function withAccountAsItIs(ctx: Ctx, network: Network, verdict: GoodVerdict): Promise<GoodVerdict> {
  if (verdict.deployment === undefined) return verdict
  if ((await ctx.chains.on(network).code(verdict.payer)) !== '0x')
    return { ...verdict, signatureKind: 'contract', deployment: undefined }
  if (ctx.eip6492Factories.has(verdict.deployment.factory.toLowerCase())) return verdict
  throw refused('eip6492_factory_not_allowed', { payer: verdict.payer })
}

/** Asks the chain what only it knows: whether the nonce is used, whether the money is there, whether the token would take it. */
async function refuseByChain(ctx: Ctx, network: Network, judged: JudgedCredential, payment: NewPayment): Promise<void> {
  const { verdict, token } = judged
  if (verdict.signatureKind === 'unproven' && (await ctx.chains.on(network).code(verdict.payer)) === '0x') {
    throw refused('invalid_exact_evm_signature', { payer: verdict.payer })
  }
  const facts = await ctx.chains.on(network).inspectAuthorization({
    token: token.address,
    authorization: verdict.authorization,
    signature: verdict.signature,
    deployment: verdict.deployment,
    untrusted: verdict.signatureKind !== 'eoa',
  })
  const reason = whyNotByChain(facts, verdict)
  if (reason === undefined) return
  if (payment.claimKey !== null && (await listTakenClaims(ctx.db, [payment.claimKey])).size > 0)
    throw fail('duplicate-payment')
  throw refused(reason, { payer: verdict.payer })
}

/**
 * The protocol's reason for what the chain said, or undefined when it would take the payment. A signature comes before the
 * money, as in the reference implementation: where only the chain can judge it, the token's words tell which one was short.
 */
export function whyNotByChain(
  facts: AuthorizationFacts,
  verdict: GoodVerdict,
): Parameters<typeof refused>[0] | undefined {
  if (facts.nonceUsed) return 'invalid_exact_evm_nonce_already_used'
  const isProven = verdict.signatureKind === 'eoa'
  if (isProven && facts.balance < verdict.authorization.value) return 'invalid_exact_evm_insufficient_balance'
  if (facts.simulation.ok) return undefined
  const fallback = isProven ? 'invalid_exact_evm_transaction_simulation_failed' : 'invalid_exact_evm_signature'
  return reasonOfRevert(facts.simulation.reason ?? '', fallback)
}

/** One key for every EIP-3009 authorisation, whatever the protocol or the door (decisions.md, section 3). */
export function claimKeyOf(network: Network, token: TokenInfo, verdict: GoodVerdict): string {
  return `eip3009:${network.caip2}:${token.address.toLowerCase()}:${verdict.payer.toLowerCase()}:${verdict.authorization.nonce}`
}

function newPayment(ctx: Ctx, request: VerifyRequest, wallet: ReceivingWallet, judged: JudgedCredential): NewPayment {
  const { authorization, signature, deployment, payer } = judged.verdict
  return {
    ...commonFields(ctx, request, wallet, judged.token),
    protocolVersion: judged.payload.x402Version,
    claimKey: claimKeyOf(wallet.network, judged.token, judged.verdict),
    rawAmount: authorization.value,
    payer,
    settlement: {
      from: authorization.from,
      to: authorization.to,
      value: authorization.value.toString(),
      validAfter: authorization.validAfter.toString(),
      validBefore: authorization.validBefore.toString(),
      nonce: authorization.nonce,
      signature: storedSignature(signature),
      deployment:
        deployment === undefined ? null : { factory: deployment.factory, calldata: deployment.factoryCalldata },
    },
    validBefore: lapseOf(authorization.validBefore),
    status: 'verified',
    settledAt: null,
  }
}

/** The signature's own fields alone, whatever else the verdict carries beside them. */
function storedSignature(signature: GoodVerdict['signature']): StoredAuthorization['signature'] {
  if (signature.kind === 'bytes') return { kind: 'bytes', signature: signature.signature }
  return { kind: 'ecdsa', v: signature.v, r: signature.r, s: signature.s }
}

const latestMs = 253_402_300_799_000n

/** When the authorisation ends, capped at the year 9999: payers may sign for ever. */
function lapseOf(validBeforeSeconds: bigint): Date {
  const ms = validBeforeSeconds * 1000n
  return instantOf(Number(ms < latestMs ? ms : latestMs))
}

async function recordStub(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  if (ctx.tenant.environment !== 'test') throw refused('stub_not_allowed')
  const symbol = wallet.supportedTokens[0]
  const token = wallet.network.tokens.find((known) => known.symbol === symbol)
  if (token === undefined) throw fail('chain-not-supported')
  const { organisationId, environment } = ctx.tenant
  const common = commonFields(ctx, request, wallet, token)
  const payment: NewPayment = {
    ...common,
    protocolVersion: null,
    claimKey:
      request.credential === 'stub_payment_accepted'
        ? null
        : `stub:${organisationId}:${environment}:${request.credential}`,
    rawAmount: rawPrice(request.price, token),
    payer: null,
    settlement: null,
    validBefore: null,
    status: 'settled',
    settledAt: common.createdAt,
  }
  await ctx.recordPayment({ ctx, payment })
  return answerOf(ctx, payment)
}

function commonFields(ctx: Ctx, request: VerifyRequest, wallet: ReceivingWallet, token: TokenInfo) {
  if (ctx.actor.kind !== 'api-key') throw new Error('payments are verified for an API key')
  return {
    id: newId('pay', ctx),
    logId: newId('plog', ctx),
    walletId: wallet.id,
    apiKeyId: ctx.actor.apiKeyId,
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
    createdAt: ctx.clock.now(),
  } as const
}

/** The address of the paid route: origin and path, without the query, which may hold what a caller asked. */
function routeOf(resource: string | undefined): string | null {
  if (resource === undefined) return null
  const { origin, pathname } = new URL(resource)
  return `${origin}${pathname}`
}
