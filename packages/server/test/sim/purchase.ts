import {
  type Address,
  bytesToHex,
  domainSeparator,
  encodePayment,
  type Hex,
  type Network,
  permit2Digest,
  permit2DomainSeparator,
  permit2Proxies,
  requirementsV2,
  type TokenInfo,
  transferWithAuthorizationDigest,
} from '@purser/protocol'
import type { Tenant } from '../../src/platform/ctx.ts'
import type { SimChain } from './chain.ts'
import type { Chance } from './chance.ts'
import type { Permit } from './permits.ts'
import { moneyKey, type Signed, textOf } from './signed.ts'
import type { Authorization } from './token.ts'
import { signatureOf } from './words.ts'

/** The plan of a payer. */
export const payerKinds = [
  'honest',
  'honest',
  'poor',
  'pays-after-all',
  'owes-twice',
  'cancels',
  'expires',
  'takes-on-code',
  'contract',
  'burning-contract',
  'sends-itself',
  'sends-late',
  'signs-twice',
  'permit',
  'permit-given-up',
  'permit-sent-by-another',
  'permit-paid-otherwise',
  'upto',
] as const
export type PayerKind = (typeof payerKinds)[number]

/**
 * The entry point of a payment: `verify` is our own middleware's, `reporting` the variant that also reports delivery.
 * `facilitator` verifies and then settles for another server, `upfront` settles without having verified.
 */
type EntryPoint = 'verify' | 'reporting' | 'facilitator' | 'upfront'

/** A buyer's request to a shop, with the facts about it that are known outside the service. */
export interface Purchase {
  readonly tenant: Tenant
  readonly kind: PayerKind
  readonly entryPoint: EntryPoint
  /** The key under which the service records it. */
  readonly claimKey: string
  readonly signed: Signed
  readonly money: string
  /** The protocol's message, if it was signed with a key. */
  readonly body: { readonly x402Version: 2; readonly paymentPayload: Message; readonly paymentRequirements: Message }
  /** The secret of its offer, which never appears on the chain. */
  readonly challengeId: string
  readonly credential: string
}

type Message = { readonly [member: string]: unknown }

export interface Payer {
  readonly address: Address
  sign(digest: Uint8Array): Promise<Hex>
}

export interface Market {
  readonly chance: Chance
  readonly chain: SimChain
  readonly network: Network
  readonly token: TokenInfo
  readonly settler: Address
  readonly payTo: Address
  readonly price: bigint
  readonly nowSeconds: number
}

interface Wanted {
  readonly tenant: Tenant
  readonly kind: PayerKind
  readonly payer: Payer
  /** The payer was funded for an earlier purchase, and pays this one from that money. */
  readonly isFunded: boolean
  /** The payer has money for many purchases. */
  readonly hasPlenty: boolean
}

/** A purchase by a buyer with enough money, signed. */
export async function purchase(
  market: Market,
  { tenant, kind, payer, isFunded, hasPlenty }: Wanted,
): Promise<Purchase> {
  const { chance, chain, network, token, price } = market
  const isPermit = kind.startsWith('permit') || kind === 'upto'
  const seconds = kind === 'expires' || kind === 'sends-late' ? 20 + chance.below(100) : 300 + chance.below(600)
  const end = BigInt(market.nowSeconds + seconds)
  const signed = isPermit ? aPermit(market, { kind, payer, end }) : anAuthorization(market, payer, end)
  const balance = hasPlenty ? price * 10n : price
  for (const { state } of isFunded ? [] : chain.blocks) state.balances.set(payer.address.toLowerCase(), balance)
  const entryPoint = isPermit ? 'facilitator' : entryPointFor(kind, chance)
  const signature =
    entryPoint === 'facilitator' || entryPoint === 'upfront'
      ? await payer.sign(digestOf(market, signed))
      : signatureOf(textOf(signed))
  if (signature.length > 66) chain.signed.set(textOf(signed), signature.slice(0, 66))
  const challengeId = bytesToHex(chance.bytes(16))
  const requirements = requirementsOf(market, kind)
  const accepted = { ...requirements, extra: { ...requirements.extra, challengeId } }
  const payload = payloadOf(signed, signature)
  const paymentPayload = { x402Version: 2, accepted, payload, resource: { url: resource } } as const
  const owner = payer.address
  const nonce = signed.form === 'eip3009' ? signed.authorization.nonce : signed.permit.nonce
  const claim = isPermit ? `permit2:${network.caip2}` : `eip3009:${network.caip2}:${token.address}`
  return {
    tenant,
    kind,
    entryPoint,
    claimKey: `${claim}:${owner}:${nonce}`.toLowerCase(),
    signed,
    money: moneyKey(signed),
    body: { x402Version: 2, paymentPayload, paymentRequirements: requirements },
    challengeId,
    credential:
      signed.form === 'eip3009'
        ? encodePayment({ ...paymentPayload, payload: wireOf(signed.authorization, signature) })
        : '',
  }
}

export const resource = 'https://shop.example/report'

function entryPointFor(kind: PayerKind, chance: Chance): EntryPoint {
  if (kind.endsWith('contract') || kind === 'owes-twice') return 'verify'
  return chance.pick(['verify', 'verify', 'reporting', 'facilitator', 'upfront'])
}

function anAuthorization({ chance, payTo, price }: Market, payer: Payer, validBefore: bigint): Signed {
  const nonce = bytesToHex(chance.bytes(32))
  return { form: 'eip3009', authorization: { from: payer.address, to: payTo, value: price, validBefore, nonce } }
}

/** The operator's minimum, in the token's smallest unit. */
const leastCharge = 1_000n

function aPermit(
  { chance, payTo, price, token, settler }: Market,
  { kind, payer, end }: { readonly kind: PayerKind; readonly payer: Payer; readonly end: bigint },
): Signed {
  const scheme = kind === 'upto' ? 'upto' : 'exact'
  const permit: Permit = {
    scheme,
    spender: permit2Proxies[scheme],
    owner: payer.address,
    token: token.address,
    permitted: price,
    nonce: BigInt(chance.below(1_000_000)),
    deadline: end,
    witness: { to: payTo, facilitator: scheme === 'upto' ? settler : undefined, validAfter: 0n },
  }
  const amount = scheme === 'exact' ? price : chance.pick([price, price / 2n, leastCharge, 0n])
  return { form: 'permit2', permit, amount }
}

function requirementsOf({ network, token, payTo, price }: Market, kind: PayerKind) {
  const offer = { network, token, rawAmount: price, payTo, maxTimeoutSeconds: 300 }
  const requirements = requirementsV2({ ...offer, resource, description: '', mimeType: 'text/plain' })
  return kind === 'upto' ? { ...requirements, scheme: 'upto' } : requirements
}

function digestOf({ network, token }: Market, signed: Signed): Uint8Array {
  if (signed.form === 'permit2') return permit2Digest(permit2DomainSeparator(network.chainId), signed.permit)
  return transferWithAuthorizationDigest(separatorOf(network, token), { ...signed.authorization, validAfter: 0n })
}

export function separatorOf(network: Network, token: TokenInfo): Uint8Array {
  if (token.eip712 === null) throw new Error('a token that signs')
  return domainSeparator({ ...token.eip712, chainId: network.chainId, verifyingContract: token.address })
}

function wireOf({ from, to, value, validBefore, nonce }: Authorization, signature: string) {
  const [amount, end] = [value.toString(), validBefore.toString()]
  return { signature, authorization: { from, to, value: amount, validAfter: '0', validBefore: end, nonce } }
}

function payloadOf(signed: Signed, signature: string): Message {
  if (signed.form === 'eip3009') return wireOf(signed.authorization, signature)
  const { owner, token, permitted, spender, nonce, deadline, witness } = signed.permit
  return {
    signature,
    permit2Authorization: {
      from: owner,
      permitted: { token, amount: permitted.toString() },
      spender,
      nonce: nonce.toString(),
      deadline: deadline.toString(),
      witness: {
        to: witness.to,
        validAfter: '0',
        ...(witness.facilitator !== undefined && { facilitator: witness.facilitator }),
      },
    },
  }
}
