import {
  bytesToHex,
  checkAuthorization,
  checksumAddress,
  type Expected,
  expectedOf,
  type FacilitatorRequest,
  type Network,
  parseFacilitatorRequest,
  reasonOfRevert,
  type TokenInfo,
} from '@purser/protocol'
import type { z } from 'zod'
import { fail as failChain } from '../../../../chain/errors.ts'
import type { AuthorizationFacts } from '../../../../chain/port.ts'
import { unixSeconds } from '../../../../platform/clock.ts'
import { isProblem } from '../../../../platform/errors.ts'
import type { ReceivingWallet } from '../../../wallets/index.ts'
import {
  type CheckedCredential,
  checkCredential,
  type GoodVerdict,
  payableTokens,
  paysForLessGas,
  rawPrice,
  refuseBelowMinimum,
  refused,
  refuseOtherNetwork,
} from '../../credential.ts'
import { fail } from '../../errors.ts'
import { refuseUnserved } from '../../facilitator/networks.ts'
import type { FacilitatorBody } from '../../facilitator/schema.ts'
import {
  challengeIdOf,
  claimKeyOf,
  expiryOf,
  fingerprintOf,
  namePayment,
  newPayment,
  type PaymentName,
  storedAuthorization,
} from '../../new-payment.ts'
import type { Ctx, Funds } from '../../ports.ts'
import { responseOf } from '../../record.ts'
import type { VerifiedPayment, VerifyRequest } from '../../schema.ts'
import { listTakenClaims, type NewPayment } from '../../store.ts'
import type { CheckedPayment, ParsedRequest, Scheme } from '../method.ts'

/** Verifies an x402 credential of scheme `exact` with a signed EIP-3009 authorization, and records the payment. */
export async function verifyExact(
  ctx: Ctx,
  request: VerifyRequest,
  wallet: ReceivingWallet,
): Promise<z.input<typeof VerifiedPayment>> {
  refuseOtherNetwork(request, wallet)
  await ctx.gasPrices.recentReads([wallet.network])

  const tokens = payableTokens(ctx, wallet)
  const signed = checkCredential(ctx, request.credential, tokens, (token) => {
    const rawAmount = rawPrice(request.price, token)
    refuseBelowMinimum(ctx, wallet.network, token, rawAmount)
    return { network: wallet.network, token, rawAmount, payTo: wallet.address }
  })
  const name = await nameOf(ctx, signed)
  await refuseDomainMismatch(ctx, wallet.network, signed.token)
  const judged = { ...signed, verdict: await resolveDeployment(ctx, wallet.network, signed.verdict) }
  const draft = newPayment(ctx, request, wallet, judged)
  const offered = await challengeIdOf(ctx, signed.payload)
  const delivery = draft.delivery === null ? null : { ...draft.delivery, challengeId: offered }
  const payment = { ...draft, ...name, delivery }
  const funds = await refuseByChain(ctx, wallet.network, judged, payment)
  await ctx.recordPayment({ ctx, payment, funds }).catch(async (error: unknown) => {
    // Of two payments that use one identifier at the same time, the second is refused because of the identifier.
    if (isProblem(error, 'duplicate-payment')) await nameOf(ctx, signed)
    throw error
  })
  return responseOf(ctx, payment)
}

/** Returns the payment identifier (x402 extension payment-identifier); version 1 has none. */
function nameOf(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  { payload: payment, verdict: { payer } }: CheckedCredential,
): Promise<PaymentName> {
  const extensions = payment.x402Version === 2 ? payment.extensions : undefined
  return namePayment(ctx, extensions, { payer, fingerprint: fingerprintOf(payment.payload) })
}

/**
 * Returns the verdict without a deployment if the account exists already. A missing account is deployed only by a factory that
 * the operator lists, since its code runs at the settler's cost.
 */
export async function resolveDeployment(
  ctx: Pick<Ctx, 'chains' | 'eip6492Factories'>,
  network: Network,
  verdict: GoodVerdict,
): Promise<GoodVerdict> {
  if (verdict.deployment === undefined) return verdict
  if ((await ctx.chains.on(network).code(verdict.payer)) !== '0x')
    return { ...verdict, signatureKind: 'contract', deployment: undefined }
  if (ctx.eip6492Factories.has(verdict.deployment.factory.toLowerCase())) return verdict
  throw refused('eip6492_factory_not_allowed', { payer: verdict.payer })
}

/**
 * Checks on chain whether the nonce is used, the balance suffices and the token would accept the transfer. Returns the payer's
 * funds, which recording compares with all of the payer's open payments.
 */
export async function refuseByChain(
  ctx: Pick<Ctx, 'chains' | 'db'>,
  network: Network,
  judged: CheckedCredential,
  payment: Pick<NewPayment, 'claimKey' | 'settlement'>,
): Promise<Funds> {
  const { verdict, token } = judged
  if (verdict.signatureKind === 'unproven' && (await ctx.chains.on(network).code(verdict.payer)) === '0x') {
    throw refused('invalid_exact_evm_signature', { payer: verdict.payer })
  }
  const gas = payment.settlement?.kind === 'eip3009' ? payment.settlement.gas : undefined
  const inspect = (granted: string | undefined) =>
    ctx.chains.on(network).inspectAuthorization({
      token: token.address,
      authorization: verdict.authorization,
      signature: verdict.signature,
      deployment: verdict.deployment,
      untrusted: verdict.signatureKind !== 'eoa',
      gas: granted === undefined ? undefined : BigInt(granted),
    })
  const facts = await inspect(gas)
  const reason = whyNotByChain(facts, verdict)
  if (reason === undefined) return { rawBalance: facts.balance, spentIds: [] }
  if (payment.claimKey !== null && (await listTakenClaims(ctx.db, [payment.claimKey])).size > 0)
    throw fail('duplicate-payment')
  const isGas = gas !== undefined && whyNotByChain(await inspect(undefined), verdict) === undefined
  throw refused(reason, { payer: verdict.payer, ...(isGas && { message: paysForLessGas }) })
}

/**
 * Returns the protocol's reason for the chain's result, or undefined if it accepts the payment. The signature comes before the
 * balance, as in the reference implementation: where only the chain can check the signature, the token's error says which of the
 * two failed.
 */
function whyNotByChain(facts: AuthorizationFacts, verdict: GoodVerdict): Parameters<typeof refused>[0] | undefined {
  if (facts.nonceUsed) return 'invalid_exact_evm_nonce_already_used'
  const isProven = verdict.signatureKind === 'eoa'
  if (isProven && facts.balance < verdict.authorization.value) return 'invalid_exact_evm_insufficient_balance'
  if (facts.simulation.ok) return undefined
  const fallback = isProven ? 'invalid_exact_evm_transaction_simulation_failed' : 'invalid_exact_evm_signature'
  return reasonOfRevert(facts.simulation.reason ?? '', fallback)
}

/**
 * Compares the domain that signatures are checked against with the token's own domain, once per token and process. If the
 * registry has a wrong domain, it would refuse good payments, or accept payments that can never be settled.
 */
export async function refuseDomainMismatch(
  ctx: Pick<Ctx, 'chainMemory' | 'chains' | 'log' | 'signatures'>,
  network: Network,
  token: TokenInfo,
): Promise<void> {
  const known = ctx.chainMemory.checkedDomains
  const key = `${network.caip2}/${token.address}`
  if (known.has(key)) return
  const domain = await ctx.chains.on(network).tokenDomain(token.address)
  const ours = bytesToHex(ctx.signatures.domainSeparators.ofToken(network, token))
  if (domain?.separator.toLowerCase() !== ours) {
    ctx.log.error(
      { network: network.name, token: token.symbol, theirs: domain?.separator, ours },
      'a token signs under another domain than the registry says',
    )
    throw failChain('chain-unavailable')
  }
  known.add(key)
}

/**
 * Scheme `exact` with a signed EIP-3009 authorization, versions 1 and 2: the checks and reasons of `payments.verify`.
 * It is the last scheme and accepts every body, so that it also reports the fault of a body that belongs to no scheme.
 */
export const exactEip3009: Scheme = { accepts: () => true, read }

function read(ctx: Ctx, body: FacilitatorBody): ParsedRequest {
  const request = parse(body)
  const { payload } = request.paymentPayload
  const payer = checksumAddress(payload.authorization.from, ctx.signatures.keccak)
  const expected = expectedOf(request.paymentRequirements, ctx.signatures.keccak)
  if (typeof expected === 'string') throw refused(expected, { payer })
  const { network, token, payTo, rawAmount } = expected
  refuseUnserved(ctx, network, payer)
  const claim = {
    claimKey: claimKeyOf(network, token, { payer, authorization: payload.authorization }),
    x402Version: request.x402Version,
    scheme: request.paymentRequirements.scheme,
    payer,
    network,
    token,
    payTo,
    fingerprint: fingerprintOf(payload),
    isPaidBy: (raw: bigint) => raw === rawAmount,
  }
  return { claim, check: () => check(ctx, request, expected) }
}

/** Extensions and output schemas are parsed elsewhere, leniently: an invalid one does not invalidate the payment. */
function parse(body: FacilitatorBody): FacilitatorRequest {
  const parsed = parseFacilitatorRequest({
    x402Version: body.x402Version,
    paymentPayload: { ...body.paymentPayload, extensions: undefined },
    paymentRequirements: { ...body.paymentRequirements, outputSchema: undefined },
  })
  if (parsed.ok) return parsed.value
  throw refused(parsed.fault.reason, { message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
}

function check(ctx: Ctx, { paymentPayload: payload }: FacilitatorRequest, expected: Expected): CheckedPayment {
  const { network, token } = expected
  const verdict = checkAuthorization({
    payload,
    expected,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: ctx.signatures.domainSeparators.ofToken(network, token),
  })
  if (!verdict.ok) throw refused(verdict.reason, { payer: verdict.payer })
  return {
    scheme: 'exact',
    rawAmount: verdict.authorization.value,
    validBefore: expiryOf(verdict.authorization.validBefore),
    async refuseByChain(claimKey) {
      await refuseDomainMismatch(ctx, network, token)
      const judged = { payload, token, verdict: await resolveDeployment(ctx, network, verdict) }
      const settlement = storedAuthorization(ctx, network, judged)
      return { settlement, funds: await refuseByChain(ctx, network, judged, { claimKey, settlement }) }
    },
  }
}
