import type { Address, Hex, Network } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import type { Environment } from '../../platform/ctx.ts'
import type { Log } from '../../platform/log.ts'
import type { Outbound } from '../../platform/outbound.ts'
import type { Random } from '../../platform/random.ts'
import type { SettingsReader } from '../settings.ts'

/** Dependencies of a partner with an HTTP API. */
export interface RoutingDeps {
  readonly outbound: Outbound
  readonly clock: Clock
}

/** Dependencies of all routing partners; each takes those that it needs. */
export interface RoutingAdapterDeps extends RoutingDeps {
  readonly log: Log
  readonly random: Random
  readonly reader: ChainReader
  readonly deliveries: DeliveryReader
  readonly findEvent: FindEvent
}

/** All that the deployment knows of a routing partner before it is opened. `Account`: one optional member with the partner's name. */
export interface RoutingAdapter<Account extends object> {
  /** Stored with transfers and quotes; never changed. */
  readonly name: string
  readonly environment: Environment
  /** Reads the account from the environment and adds its faults. */
  readAccount(reader: SettingsReader): Account
  /** Whether the partner serves a route, as a part of a sentence; undefined if it does not. */
  whyServing(ends: RouteEnds): string | undefined
  /** Undefined without an account. */
  open(deps: RoutingAdapterDeps, account: Account): RoutingPartner | undefined
}

/** A partner that swaps tokens or bridges them to another chain. */
export interface RoutingPartner {
  readonly name: string
  /** The partner's contracts. Tokens sent to one by a plain transfer are lost. */
  readonly contracts: readonly Address[]
  /** Returns the cost and the calls to sign. Every call has passed the guard. Nothing moves. */
  quote(request: RouteRequest): Promise<Quoted>
  /**
   * The balance changes on the source network that a trial of the partner's call must show, decoded from its bytes. Undefined for a call that does
   * not match the request or has no decoder. Makes no requests.
   */
  expects(request: RouteRequest, call: PlannedCall): readonly ExpectedChange[] | undefined
  /** The status of a route whose last call is mined. Idempotent. */
  status(route: SentRoute): Promise<RouteStatus>
}

/** The configured partners by environment. */
export type RoutingPartners = Readonly<Record<Environment, Readonly<Record<string, RoutingPartner>>>>

/** The part of the routing partners that features use. */
export interface RoutingPorts {
  readonly routingPartners: RoutingPartners
  /** Chooses the route and partner of a transfer, without requests. */
  chooseRoute(ends: RouteEnds, environment: Environment): RouteChoice
}

/** The route of a transfer and its partner. `why` is an explanation for the caller. */
export type RouteChoice =
  | { readonly route: 'direct'; readonly why: string }
  | { readonly route: 'partner-swap' | 'partner-bridge'; readonly partner: string; readonly why: string }

/** A token on a network. The zero address means the network's native coin. */
export interface RouteEnd {
  readonly network: Network
  readonly token: { readonly symbol: string; readonly address: Address; readonly decimals: number }
}

export interface RouteEnds {
  readonly from: RouteEnd
  readonly to: RouteEnd
}

export interface RouteRequest extends RouteEnds {
  /** In the smallest unit of the source token. */
  readonly rawAmount: bigint
  /** Signs the calls and receives refunds. */
  readonly fromAddress: Address
  readonly toAddress: Address
  /** Maximum slippage between quote and arrival, in hundredths of a percent. */
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

/** Bounds on an account's balance change, in the smallest unit; a decrease is negative. */
export interface ExpectedChange {
  /** The zero address means the network's native coin. */
  readonly token: Address
  /** `supply`: the token's total supply. */
  readonly account: Address | 'supply'
  readonly least: bigint
  /** Unbounded when omitted. */
  readonly most?: bigint
}

export interface RouteFee {
  readonly name: string
  readonly symbol: string
  readonly rawAmount: bigint
}

export interface RouteQuote {
  readonly partner: string
  /** Identifies the route in `status`. */
  readonly reference: string
  readonly rawOut: bigint
  /** At least this much arrives, or the money is refunded. */
  readonly rawOutMin: bigint
  readonly fees: readonly RouteFee[]
  readonly etaSeconds: number
  /** Not signed after this time; request a new quote. */
  readonly expiresAt: Date
  readonly calls: readonly PlannedCall[]
  /** Gas of the call that the sender's master must send on the destination chain (`claimable`), at most. Undefined where it sends none. */
  readonly claimGas?: bigint
  /** The partner's order that the calls pay for, where they name one. It is filled once, however often it is paid for. */
  readonly orderId?: Hex
}

/**
 * `no-route`: there is no route. `amount-too-low`, `amount-too-high`: not for this amount. `recipient-refused`: the token would not pay the recipient;
 * `words` is its reason. `unsafe`: the partner's calls fail the guard; `words` names the broken rule.
 */
export type Quoted =
  | { readonly ok: true; readonly quote: RouteQuote }
  | {
      readonly ok: false
      readonly reason: 'no-route' | 'amount-too-low' | 'amount-too-high' | 'recipient-refused' | 'unsafe'
      readonly words: string
      /** For the operator: the partner's call that has no decoder. */
      readonly undecodedCall?: string
    }

/** A sent route, as the sender stores it. */
export interface SentRoute {
  readonly request: RouteRequest
  /** A smaller amount does not count as delivery. */
  readonly rawOutMin: bigint
  readonly reference: string
  /** Hash of the transaction that started it. */
  readonly txHash: Hex
}

/**
 * `claimable`: a call must be sent once on the destination network, by any account. `message` identifies the delivery; it belongs to one route, so
 * two routes with the same message indicate an error. `failed`: the delivery will probably not arrive and the money has left; keep polling until
 * `refund` is `done`. `refund` is `unknown` when the partner announces none. `isUnknown`: the partner returned an undocumented status, which stays
 * pending.
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
      /** The received amount; absent when the partner does not report it, in which case the receipt does. */
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

interface Received {
  readonly chainId: number
  readonly token: Address
  readonly rawAmount: bigint
  /** Whether it is a different token than requested. */
  readonly isOther: boolean
}

/** Chain reads for the adapters. All but the block number are those of a majority of the nodes; they throw `chain-unavailable` while there is none. */
export interface ChainReader {
  /** A call's result as of the latest block. Nodes agree if their results are the same, or have the same meaning. */
  call(network: Network, to: Address, data: Hex, meaningOf?: (response: Hex) => string): Promise<Hex>
  blockNumber(network: Network): Promise<bigint>
  /** A transaction's logs in order; undefined when it is not mined. */
  logs(network: Network, txHash: Hex): Promise<readonly ChainLog[] | undefined>
}

/** Reads that prove a delivery by a contract on the destination chain. */
export interface DeliveryReader {
  /** The number that a contract returns in the newest block at the confirmation depth; undefined if no majority of the nodes agrees on one. */
  numberAtDepth(network: Network, to: Address, data: Hex): Promise<bigint | undefined>
  /**
   * The revert reason of a call in the latest block, confirmed by a majority of the nodes; undefined if it would not revert, or reverts without a
   * reason.
   */
  refusalOf(
    network: Network,
    call: { readonly from: Address; readonly to: Address; readonly data: Hex },
  ): Promise<string | undefined>
}

/** The newest transaction in which a contract logged an event with these topics. */
export type FindEvent = (network: Network, address: Address, topics: readonly Hex[]) => Promise<Hex | undefined>

export interface ChainLog {
  readonly address: Address
  readonly topics: readonly Hex[]
  readonly data: Hex
}
