import {
  type Address,
  type AuthorizationOffer,
  type Chain,
  chains,
  mppAuthenticateLengthMax,
  type Network,
  type OfferReading,
  type OfferRefusalReason,
  type OfferRules,
  offerOrder,
  offersOfMpp,
  offersOfV1,
  offersOfV2,
  parseUsd,
  resolveNetwork,
  tokenByAddress,
  x402Headers,
} from '@purser/protocol'
import { isServiceAddress } from '../../chains/index.ts'
import { type Coin, needOf, refuseShort, withFunds } from '../../funds/index.ts'
import type { SourceWallet } from '../../wallets/index.ts'
import { refuseFlagged } from '../plan.ts'
import type { Ctx, TransferPlan } from '../ports.ts'
import { type ChallengePayment, headerOf } from './schema.ts'

/** The reason why a wallet does not pay an offer. */
export interface OfferRefusal {
  readonly offer: string
  readonly reason:
    | OfferRefusalReason
    | 'token-not-allowed'
    | 'above-max-amount'
    | 'no-amount'
    | 'service-address'
    | 'not-as-approved'
}

/** An offer that the caller's limits allow, on a chain of the tenant's environment. */
export interface AllowedOffer {
  readonly offer: AuthorizationOffer
  readonly chain: Chain
}

/** Most offers for which chains are read. */
const triedMax = 8

/** The offers of a 402 within the caller's limits, in the order of preference, and the reasons against the others. */
export function offersWithin(
  ctx: Pick<Ctx, 'chains' | 'clock' | 'routingPartners' | 'settlerAddress' | 'tenant'>,
  request: ChallengePayment,
): { readonly allowed: readonly AllowedOffer[]; readonly refusals: readonly OfferRefusal[] } {
  const named = networksFor(ctx, request)
  const readings = readingsOf(request, rulesOf(ctx, named))
  const allowed: AllowedOffer[] = []
  const refusals: OfferRefusal[] = []
  for (const reading of readings) {
    if ('refusal' in reading) {
      refusals.push(reading.refusal)
      continue
    }
    const { offer } = reading
    const chain = named.get(offer.network.name)
    const reason = chain === undefined ? 'network-not-allowed' : whyNot(ctx, request, offer)
    if (reason !== undefined) refusals.push({ offer: `${offer.method} ${offer.network.name}`, reason })
    else if (chain !== undefined && offer.kind === 'authorization') allowed.push({ offer, chain })
  }
  const order = offerOrder(request.prefer === undefined ? [] : [request.prefer])
  return { allowed: allowed.sort((left, right) => order(left.offer, right.offer)).slice(0, triedMax), refusals }
}

/** The chains that may be paid on, by network: of the key's environment, with tokens that pay by signature. */
function networksFor(ctx: Pick<Ctx, 'tenant'>, request: ChallengePayment): ReadonlyMap<string, Chain> {
  return new Map(
    (request.chains ?? chains).flatMap((chain): [string, Chain][] => {
      const network = resolveNetwork(chain, ctx.tenant.environment)
      return network?.settlesEip3009 === true ? [[network.name, chain]] : []
    }),
  )
}

function rulesOf(ctx: Pick<Ctx, 'chains' | 'clock'>, named: ReadonlyMap<string, Chain>): OfferRules {
  return {
    nowMs: ctx.clock.now().getTime(),
    isAllowed: ({ name }) => named.has(name),
    tokenAt: (network, address) => {
      const token = tokenByAddress(network, address)
      // A token whose contract has another domain than the registry refuses every signature.
      return token !== undefined && ctx.chains.tokenDomainState(network, token) === 'wrong' ? undefined : token
    },
  }
}

/** The body, which carries version 1, is read only if no header has a payable offer. */
function readingsOf(
  { challenge: { headers, body }, headers: sent = {} }: ChallengePayment,
  rules: OfferRules,
): readonly OfferReading[] {
  const fieldOf = (name: string): string | undefined => {
    const values = Object.entries(headers).flatMap(([own, value]) => (own.toLowerCase() === name ? [value] : []))
    return values.length === 0 ? undefined : values.join(', ')
  }
  const required = fieldOf(x402Headers.paymentRequired.toLowerCase())
  const authenticate = fieldOf('www-authenticate')?.slice(0, mppAuthenticateLengthMax + 1)
  const inHeaders = [
    ...(required === undefined ? [] : offersOfV2(rules, required)),
    ...(authenticate === undefined
      ? []
      : offersOfMpp(rules, authenticate, (header) => headerOf(sent)(header) !== undefined)),
  ]
  return inHeaders.some((reading) => 'offer' in reading)
    ? inHeaders
    : [...inHeaders, ...offersOfV1(rules, jsonOf(body))]
}

function jsonOf(body: string | undefined): unknown {
  try {
    return body === undefined ? undefined : JSON.parse(body)
  } catch {
    return undefined
  }
}

function whyNot(
  ctx: Pick<Ctx, 'routingPartners' | 'settlerAddress'>,
  { tokens, maxAmount }: ChallengePayment,
  offer: Extract<OfferReading, { offer: unknown }>['offer'],
): OfferRefusal['reason'] | undefined {
  if (offer.kind !== 'authorization') return 'unsupported-scheme'
  if (tokens?.includes(offer.token.symbol) === false) return 'token-not-allowed'
  if (offer.rawAmount === 0n) return 'no-amount'
  if (offer.usd > (parseUsd(maxAmount) ?? 0n)) return 'above-max-amount'
  return isServiceAddress(ctx, offer.payTo) ? 'service-address' : undefined
}

/** The authorization that a wallet signs and its payee sends. */
export interface SignedTerms {
  readonly source: SourceWallet
  readonly network: Network
  readonly fromChain: Chain
  readonly coin: Coin
  readonly rawAmount: bigint
  readonly to: Address
  readonly routeReason: string
  readonly except?: string | undefined
}

/**
 * Plans a transfer that the wallet signs and its payee sends, which costs no gas. Throws the refusals: the recipient is flagged, or the
 * wallet has too little. Reads once more if funds are short while mined deposits are not booked yet.
 */
export async function planSignature(
  ctx: Pick<Ctx, 'chains' | 'db' | 'deposits' | 'readFunds' | 'screening' | 'tenant'>,
  terms: SignedTerms,
): Promise<TransferPlan> {
  const { source, network, fromChain, coin, rawAmount, to, routeReason, except } = terms
  await refuseFlagged(ctx, to)
  const asset = { tenant: ctx.tenant, network, walletId: source.id, owner: source.address, coin, except }
  const snapshot = await withFunds(ctx, network, [asset], async (funds) => {
    refuseShort([needOf(coin, rawAmount, funds.spendable[0])])
    return funds.snapshot
  })
  const ends = { source, network, target: network, fromChain, coin, toCoin: coin, rawAmount }
  const gasless = { snapshot, steps: [], rawFee: 0n, feeCoin: coin, quote: undefined }
  return { ...ends, ...gasless, route: 'direct', routeReason }
}
