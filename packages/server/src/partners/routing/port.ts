import type { Address, Hex, Network } from '@purser/protocol'
import type { Environment } from '../../platform/ctx.ts'

/** Who moves a token to another token or another chain. */
export interface RoutingPartner {
  readonly name: PartnerName
  /** The partner's own contracts: what somebody sends to one by a plain transfer is lost. */
  readonly contracts: readonly Address[]
  /** What it would cost and what there is to sign. Every call in it has passed the guard; nothing moves. */
  quote(request: RouteRequest): Promise<Quoted>
  /**
   * The balances that the partner's call must change on the source network, by its own bytes, where it is tried before it is signed.
   * Undefined for a call that is not the one of the request, and for one that is not understood. Talks to nobody.
   */
  expects(request: RouteRequest, call: PlannedCall): readonly ExpectedChange[] | undefined
  /** What became of a route whose last call is in a block. Asking again is harmless. */
  status(route: SentRoute): Promise<RouteStatus>
}

export type PartnerName = 'cctp' | 'relay' | 'lifi' | 'sandbox'

/** The partners of each environment that are configured. */
export type RoutingPartners = Readonly<Record<Environment, Readonly<Partial<Record<PartnerName, RoutingPartner>>>>>

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly routingPartners: RoutingPartners
    /** How a transfer goes, and by whom; asks nobody. */
    chooseRoute(ends: { readonly from: RouteEnd; readonly to: RouteEnd }, environment: Environment): RouteChoice
  }
}

/** How a transfer goes, as the document names it, and by whom. `why` is a sentence for whoever asked. */
export type RouteChoice =
  | { readonly route: 'direct'; readonly why: string }
  | { readonly route: 'partner-swap' | 'partner-bridge'; readonly partner: PartnerName; readonly why: string }

/** A token on a network. The zero address is the network's own coin. */
export interface RouteEnd {
  readonly network: Network
  readonly token: { readonly symbol: string; readonly address: Address; readonly decimals: number }
}

export interface RouteRequest {
  readonly from: RouteEnd
  readonly to: RouteEnd
  /** In the smallest unit of the token that is given. */
  readonly rawAmount: bigint
  /** Signs, and gets what is refunded. */
  readonly fromAddress: Address
  readonly toAddress: Address
  /** Most that may be lost between the quote and the arrival, in hundredths of a percent. */
  readonly slippageBps: number
}

/** A call to sign on the source network, in order. */
export interface PlannedCall {
  readonly chainId: number
  readonly to: Address
  /** In wei. */
  readonly value: bigint
  readonly data: Hex
}

/** By how much a call changes an account's balance, in the smallest unit; what falls is negative. */
export interface ExpectedChange {
  /** The zero address is the network's coin. */
  readonly token: Address
  /** `supply`: how much there is of the token in all. */
  readonly account: Address | 'supply'
  readonly least: bigint
  /** No bound where it is left out. */
  readonly most?: bigint
}

export interface RouteFee {
  readonly name: string
  readonly symbol: string
  readonly rawAmount: bigint
}

export interface RouteQuote {
  readonly partner: PartnerName
  /** What `status` needs to know it again. */
  readonly reference: string
  readonly rawOut: bigint
  /** Never less arrives, or the money comes back. */
  readonly rawOutMin: bigint
  readonly fees: readonly RouteFee[]
  readonly etaSeconds: number
  /** Not signed from then on: ask for another. */
  readonly expiresAt: Date
  readonly calls: readonly PlannedCall[]
}

/**
 * `no-route`: there is none. `amount-too-low`, `amount-too-high`: not for so much. `unsafe`: the partner asks for a call that is not signed;
 * `words` says which rule it breaks.
 */
export type Quoted =
  | { readonly ok: true; readonly quote: RouteQuote }
  | {
      readonly ok: false
      readonly reason: 'no-route' | 'amount-too-low' | 'amount-too-high' | 'unsafe'
      readonly words: string
      /** For the operator: the call that the partner offered and that no decoder here reads. */
      readonly notUnderstood?: string
    }

/** A route under way, as whoever sent it keeps it. */
export interface SentRoute {
  readonly request: RouteRequest
  /** Less than this is no delivery. */
  readonly rawOutMin: bigint
  readonly reference: string
  /** Of the call that set it going. */
  readonly txHash: Hex
}

/**
 * `claimable`: on the destination network a call waits to be sent, by anybody, once. `message` is what is delivered there, once, for one
 * route: two routes that are told of one message are told wrong. `failed`: what was asked for will hardly arrive, and the money has left:
 * until `refund` is `done`, ask on; `unknown` where the partner speaks of none. `isUnknown` where the partner said what nobody documented:
 * it is waited for.
 */
export type RouteStatus =
  | { readonly state: 'pending'; readonly partnerStatus: string; readonly isUnknown?: true }
  | {
      readonly state: 'claimable'
      readonly partnerStatus: string
      readonly call: PlannedCall
      readonly message?: Hex
    }
  | {
      readonly state: 'completed'
      readonly partnerStatus: string
      /** What arrived; absent where the partner does not say: the receipt does. */
      readonly received?: Received
      readonly destinationTxHash?: Hex
      readonly message?: Hex
    }
  | {
      readonly state: 'failed'
      readonly partnerStatus: string
      readonly reason: string
      readonly refund: 'unknown' | 'pending' | 'done'
      readonly refundTxHash?: Hex
    }

export interface Received {
  readonly chainId: number
  readonly token: Address
  readonly rawAmount: bigint
  /** Whether it is another token than was asked for. */
  readonly isOther: boolean
}

/** What an adapter reads of a chain. */
export interface ChainReader {
  /** A call's answer as of the latest block. */
  call(network: Network, to: Address, data: Hex): Promise<Hex>
  /** The same as of the newest block at the network's confirmation depth. */
  callAtDepth(network: Network, to: Address, data: Hex): Promise<Hex>
  blockNumber(network: Network): Promise<bigint>
  /** What the contracts told in a transaction, in their order; undefined where the node knows no block that has it. */
  logs(network: Network, txHash: Hex): Promise<readonly ChainLog[] | undefined>
}

export interface ChainLog {
  readonly address: Address
  readonly topics: readonly Hex[]
  readonly data: Hex
}
