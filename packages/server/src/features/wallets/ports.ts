import type { Address, Chain, Network } from '@purser/protocol'
import type { WalletKeysPort } from '../../custody/wallet-keys.ts'
import type { RoutingPorts } from '../../partners/routing/port.ts'
import type { ScreeningPort } from '../../partners/screening/port.ts'
import type { Call, Deps as PlatformDeps, Tenant } from '../../platform/ctx.ts'
import type { Id } from '../../platform/ids.ts'
import { type DeclareOperation, operationFor } from '../../platform/operation.ts'
import type { ChainDeps } from '../chains/index.ts'
import type { FundDeps } from '../funds/index.ts'
import type { DueCursors, PlanDeps } from '../plans/index.ts'
import type { RelayerDeps } from '../relayer/index.ts'
import type { ReadHolding } from './balances/read.ts'
import type { FindSource } from './managed/source-store.ts'

/** A public BIP-32 node, from which children are derived without any secret. */
export interface PublicNode {
  /** The compressed point, 33 bytes. */
  readonly publicKey: Uint8Array
  /** 32 bytes. */
  readonly chainCode: Uint8Array
}

/**
 * The account of a node's child, EIP-55 checksummed. Undefined for an index without a valid BIP-32 key (one in 2^127): the next one is used
 * instead.
 */
export type DeriveAddress = (node: PublicNode, index: number) => Address | undefined

export type WalletId = Id<'byw'> | Id<'mwt'> | Id<'cad'>

/** A receiving wallet, with the fields that a payment needs. */
export interface ReceivingWallet {
  readonly id: WalletId
  /** EIP-55 checksummed. */
  readonly address: Address
  /** The chain name that the owner sent, and the network that it means in the wallet's environment. */
  readonly chain: Chain
  readonly network: Network
  readonly supportedTokens: readonly string[]
  readonly isActive: boolean
  /** Only managed wallets can be retired; a retired wallet is not active either. */
  readonly isRetired: boolean
  readonly amlStatus: 'pending' | 'clear' | 'flagged'
}

/** Finds the wallets that payments go to. */
export interface WalletDirectory {
  /** The wallet of that tenant, or undefined for any other, missing or deleted one. */
  find(tenant: Tenant, walletId: WalletId): Promise<ReceivingWallet | undefined>
  /** The tenant's wallet with that address, EIP-55 checksummed, on that network. */
  findByAddress(tenant: Tenant, network: Network, address: Address): Promise<ReceivingWallet | undefined>
}

/** Dependencies of the feature wallets. */
export interface Deps
  extends PlatformDeps,
    PlanDeps,
    ChainDeps,
    FundDeps,
    RelayerDeps,
    WalletKeysPort,
    ScreeningPort,
    RoutingPorts {
  readonly deriveAddress: DeriveAddress
  readonly readHolding: ReadHolding
  readonly receivingWallets: WalletDirectory
  readonly findSource: FindSource
  /** By network, the organisation behind which the next list of due automatic sweeps starts. */
  readonly sweepCursors: DueCursors
  /** By network, the owner behind which the next list of sweeps on Tempo starts. */
  readonly tempoCursors: DueCursors
  /** By environment, the organisation behind which the next list of wallets, or of deposits, to screen starts. */
  readonly screeningCursors: { readonly [list in 'wallets' | 'deposits']: DueCursors }
}

/** Context of one call. */
export interface Ctx extends Deps, Call {}

export const operation: DeclareOperation<Deps> = operationFor()
