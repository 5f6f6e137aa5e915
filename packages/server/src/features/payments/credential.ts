import {
  type Address,
  type AmountFault,
  type AuthorizationVerdict,
  checkAuthorization,
  decodePayment,
  type Expected,
  formatAmount,
  type Network,
  type PaymentPayload,
  priceInStablecoin,
  type Reason,
  type TokenInfo,
  tokenBySymbol,
} from '@purser/protocol'
import { fail as failChain } from '../../chain/errors.ts'
import { unixSeconds } from '../../platform/clock.ts'
import { isWorthLess } from '../plans/index.ts'
import { failWallet, type ReceivingWallet } from '../wallets/index.ts'
import { fail, failBody, refusedMpp } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { VerifyRequest } from './schema.ts'
import type { NewPayment } from './store.ts'

/** Returns the refusal of a credential. The caller receives only the protocol's own reason. */
export function refused(
  reason: Reason | 'stub_not_allowed' | 'insufficient_funds' | 'payer_sanctioned',
  members: Readonly<Record<string, unknown>> = {},
): Error {
  return fail('payment-verification-failed', { reason, ...members })
}

/** Whether the credential is a stub payment of the test environment. */
export function isStub(credential: string): boolean {
  return /^stub_payment_[\x21-\x7e]{1,200}$/.test(credential)
}

export type GoodVerdict = Extract<AuthorizationVerdict, { ok: true }>

export interface CheckedCredential {
  readonly payload: PaymentPayload
  readonly token: TokenInfo
  readonly verdict: GoodVerdict
}

/**
 * Checks everything about an x402 credential that does not need the chain. Version 1 does not name the token, so every token that
 * the wallet accepts is tried; the signature fits only one domain.
 */
export function checkCredential(
  ctx: Pick<Ctx, 'clock' | 'signatures'>,
  credential: string,
  tokens: readonly TokenInfo[],
  expect: (token: TokenInfo) => Expected,
): CheckedCredential {
  const decoded = decodePayment(credential)
  if (!decoded.ok) throw refused(decoded.fault.reason, { path: decoded.fault.path, message: decoded.fault.message })
  return checkDecodedPayment(ctx, decoded.value, tokens, expect)
}

/** Checks a payment that is already decoded, or that was built from another protocol's credential, as `checkCredential` does. */
export function checkDecodedPayment(
  ctx: Pick<Ctx, 'clock' | 'signatures'>,
  payload: PaymentPayload,
  tokens: readonly TokenInfo[],
  expect: (token: TokenInfo) => Expected,
): CheckedCredential {
  const candidates =
    payload.x402Version === 2
      ? tokens.filter((token) => token.address.toLowerCase() === payload.accepted.asset.toLowerCase())
      : tokens
  const judged = (candidates.length > 0 ? candidates : tokens.slice(0, 1)).map((token) => ({
    token,
    verdict: check(ctx, payload, expect(token)),
  }))
  const best =
    judged.find(({ verdict }) => verdict.ok && verdict.signatureKind === 'eoa') ??
    judged.find(({ verdict }) => verdict.ok) ??
    judged[0]
  if (best === undefined) throw refused('invalid_payment_requirements')
  if (!best.verdict.ok) throw refused(best.verdict.reason, { payer: best.verdict.payer })
  return { payload, token: best.token, verdict: best.verdict }
}

function check(
  ctx: Pick<Ctx, 'clock' | 'signatures'>,
  payload: PaymentPayload,
  expected: Expected,
): AuthorizationVerdict {
  return checkAuthorization({
    payload,
    expected,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: ctx.signatures.domainSeparators.ofToken(expected.network, expected.token),
  })
}

/** Refuses a credential whose caller expects another network than the wallet's. */
export function refuseOtherNetwork(request: VerifyRequest, wallet: ReceivingWallet): void {
  if (request.network !== undefined && request.network !== wallet.network.caip2)
    throw refused('invalid_exact_evm_network_mismatch')
}

/**
 * Returns the tokens of the wallet that a signed authorization can move on its network, in the owner's order; possibly none.
 * Excludes a token whose domain differs on chain from the registry. Includes a token that no node has reported on yet: no payment
 * is accepted before its domain is checked (`refuseDomainMismatch`).
 */
export function tokensByAuthorization(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  if (!wallet.network.settlesEip3009) return []
  const tokens = wallet.supportedTokens.flatMap((symbol) => tokenBySymbol(wallet.network, symbol) ?? [])
  return tokens.filter((token) => token.eip3009 && ctx.chains.tokenDomainState(wallet.network, token) !== 'wrong')
}

/** Returns `tokensByAuthorization`; throws if there are none. */
export function payableTokens(ctx: Pick<Ctx, 'chains'>, wallet: ReceivingWallet): readonly TokenInfo[] {
  const payable = tokensByAuthorization(ctx, wallet)
  if (payable.length === 0) throw fail('chain-not-supported')
  return payable
}

/** Whether the price is zero, in any notation. */
export function isFree(price: string): boolean {
  return /^0(\.0+)?$/.test(price)
}

/**
 * Returns a US dollar price in the token's smallest unit: one stablecoin is one dollar. Refuses digits that the token cannot
 * represent.
 */
export function rawAmountOf(price: string, token: TokenInfo): bigint {
  const raw = priceInStablecoin(price, token)
  if (typeof raw !== 'bigint') throw invalidAmount(raw, token)
  return raw
}

/** Returns `rawAmountOf` of a price above zero: a transfer of nothing would cost gas and move no money. */
export function rawPrice(price: string, token: TokenInfo): bigint {
  const raw = rawAmountOf(price, token)
  if (raw === 0n) throw invalidAmount('zero', token)
  return raw
}

const zeroPrice = 'The price is zero, which only MPP can express.'

/** The detail states the limit too, since logs of sellers show nothing else. */
function invalidAmount(reason: AmountFault | 'zero', { symbol, decimals }: TokenInfo): Error {
  const details = {
    zero: zeroPrice,
    negative: 'The price is negative.',
    'not-a-decimal': 'The price is not decimal text such as "0.01".',
    'too-many-digits': `The price has more than the ${decimals} decimals of ${symbol}.`,
    'too-large': `The price is more than ${symbol} can express.`,
  }
  return failBody('amount-invalid', { reason, detail: details[reason] })
}

/** Refuses a price of zero where no protocol can express one. */
export const refusedZero = (): Error => failBody('amount-invalid', { reason: 'zero', detail: zeroPrice })

/** Gas to settle the cheapest payment, including its share of a transaction. */
const gasOfCheapest = 70_000n

/** The least that a challenge may charge on a network, in billionths of a US dollar. */
interface Minimum {
  readonly network: Network
  readonly nanoUsd: bigint
}

/**
 * Returns the least that a challenge may charge now: settling must not cost more than the amount. Where the payer pays the gas, only
 * the operator's minimum applies. So it does for a network without nodes, or whose nodes have not reported a gas price: stub payments need
 * none, and nothing else is verified there.
 */
export function minimumOn(ctx: PriceCtx, network: Network): Minimum {
  const cost = network.settlesEip3009 ? ctx.gasPrices.knownCostOf(network, gasOfCheapest) : 0n
  return { network, nanoUsd: nanoUsdMin(ctx, cost) }
}

/** Whether a challenge may charge this amount on the network. */
export function isWorthSettling(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): boolean {
  return !isWorthLess(raw, token, minimumOn(ctx, network).nanoUsd)
}

/**
 * Refuses a price that no challenge of the last minutes could have offered. An offered price is accepted even if gas has become
 * more expensive since.
 */
export function refuseBelowMinimum(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): void {
  const leastCost = network.settlesEip3009 ? ctx.gasPrices.leastCostOf(network, gasOfCheapest) : 0n
  const nanoUsd = nanoUsdMin(ctx, leastCost)
  if (isWorthLess(raw, token, nanoUsd)) throw belowMinimum({ network, nanoUsd })
}

/** The refusal of a price. It names the minimum, rounded up to what a token with 6 decimals can pay. */
export function belowMinimum({ network, nanoUsd }: Minimum): Error {
  const least = formatAmount((nanoUsd + 999n) / 1_000n, 6)
  const detail = `The price is below ${least} USD, the smallest payment that is settled on ${network.name} now. Raise it, or offer a cheaper chain.`
  return failBody('amount-below-minimum', { detail })
}

/** Gas of a transfer on Tempo to an account that has the token. */
const gasOfTempoTransfer = 50_000n

/** Whether an amount pays for its own transfer on Tempo, whose fee a sponsor would pay. */
export function isWorthSponsoring(ctx: PriceCtx, network: Network, token: TokenInfo, raw: bigint): boolean {
  return !isWorthLess(raw, token, ctx.gasPrices.knownCostOf(network, gasOfTempoTransfer))
}

/**
 * Returns the smallest charge of an `upto` permit whose settlement is granted this much gas, in the token's smallest unit: its cost at the lowest
 * known price, but at least the operator's minimum. Throws `chain-unavailable` before any price is known.
 */
export function leastChargeOf(ctx: PriceCtx, network: Network, { decimals }: TokenInfo, gas: bigint): bigint {
  const cost = ctx.gasPrices.lowestKnownCostOf(network, gas)
  if (cost === undefined) throw failChain('chain-unavailable', {}, new Error(`no gas price of ${network.name} yet`))
  const nanoUsd = nanoUsdMin(ctx, cost)
  return (nanoUsd * 10n ** BigInt(decimals) + 999_999_999n) / 1_000_000_000n
}

/** Message added to a refusal if the payment would be accepted with the usual gas grant. */
export const paysForLessGas = 'The chain refuses the payment with the gas that its amount pays for.'

const gasUnit = 1_000_000n

/**
 * Returns the grant of gas of a payment whose settlement may run a payer's contract: no more than its amount pays for, at the lowest price of the last
 * minutes. Undefined if that is the usual grant or more, and where the operator values gas at nothing. Throws `chain-unavailable` before
 * any node has reported a price.
 */
export function gasPaidBy(
  ctx: PriceCtx,
  { network, token, raw }: { readonly network: Network; readonly token: TokenInfo; readonly raw: bigint },
  usual: bigint,
): string | undefined {
  const cost = ctx.gasPrices.lowestKnownCostOf(network, gasUnit)
  if (cost === undefined) throw failChain('chain-unavailable', {}, new Error(`no gas price of ${network.name} yet`))
  if (cost === 0n) return undefined
  const paid = (raw * 1_000_000_000n * gasUnit) / (cost * 10n ** BigInt(token.decimals))
  return paid < usual ? paid.toString() : undefined
}

type PriceCtx = Pick<Ctx, 'settleMicroUsdMin' | 'gasPrices'>

function nanoUsdMin({ settleMicroUsdMin }: PriceCtx, cost: bigint): bigint {
  const least = settleMicroUsdMin * 1_000n
  return cost > least ? cost : least
}

/**
 * Refuses a payment whose payer or receiver is sanctioned, with the protocol's own refusal. It reads only memory. If screening is
 * unavailable, the payment is accepted and deposit screening puts its proceeds on hold.
 */
export function refuseSanctioned(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  payment: Pick<NewPayment, 'protocol' | 'payer' | 'payTo'>,
): void {
  const reason = sanctionedReason(ctx, payment)
  if (reason !== undefined) throw refusal(payment, reason, messages[reason])
}

const messages = {
  invalid_payment_requirements: 'payTo is sanctioned',
  payer_sanctioned: 'the payer is sanctioned',
} as const

/** Returns x402's reason if the receiver or the payer is sanctioned, otherwise undefined. It reads only memory. */
export function sanctionedReason(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  { payer, payTo }: Pick<NewPayment, 'payer' | 'payTo'>,
): keyof typeof messages | undefined {
  if (isFlagged(ctx, payTo)) return 'invalid_payment_requirements'
  return payer !== null && isFlagged(ctx, payer) ? 'payer_sanctioned' : undefined
}

/**
 * Throws `wallet-flagged` if a receiver is sanctioned. A wallet's own screening follows the list later, and the payer of a challenge may send the money
 * before anything is verified. It reads only memory.
 */
export function refuseSanctionedReceivers(
  ctx: Pick<Ctx, 'screening' | 'tenant'>,
  wallets: readonly Pick<ReceivingWallet, 'address'>[],
): void {
  if (wallets.some(({ address }) => isFlagged(ctx, address))) throw failWallet('wallet-flagged')
}

function isFlagged({ screening, tenant }: Pick<Ctx, 'screening' | 'tenant'>, account: string): boolean {
  const address: Address = `0x${account.slice(2)}`
  return screening.screenNow(address, tenant.environment).result === 'flagged'
}

function refusal(
  { protocol, payer }: Pick<NewPayment, 'protocol' | 'payer'>,
  reason: 'invalid_payment_requirements' | 'payer_sanctioned',
  message: string,
): Error {
  const members = payer === null ? {} : { payer }
  if (protocol === 'mpp') return refusedMpp('verification-failed', `The payment was refused: ${message}.`, members)
  return refused(reason, { message, ...members })
}
