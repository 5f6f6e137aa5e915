import type { Address } from './address.ts'

/**
 * The moment from which a deposit counts: its block is not above the node's block with this tag (block parameter of
 * JSON-RPC), or `depth` blocks, its own included, are on the chain.
 */
export type DepositFinality = { readonly tag: 'safe' | 'finalized' } | { readonly depth: number }

/**
 * `op-stack`: the predeploy `GasPriceOracle`; a transaction pays for its bytes in addition to gas. `nitro`: Arbitrum's precompile
 * `ArbGasInfo`; the bytes take gas from the gas limit before the transaction runs, and it is refused where the limit is lower.
 */
export type L1FeeOracle = { readonly kind: 'op-stack' | 'nitro'; readonly address: Address }

/** Fees for gas in wei per unit of gas; on Tempo in attodollars. */
export type GasFees = {
  /** The highest fees ever offered, so that a node that reports more and more cannot drain an account. */
  readonly maxFee: bigint
  readonly priorityFee: bigint
  /** Assumed before any node has reported: higher than the network usually is, so that no budget is exceeded. */
  readonly assumed: bigint
}

/** The network in Circle's CCTP v2 (developers.circle.com, "Supported chains and domains" and "Block confirmations"). */
export type CctpDomain = {
  readonly domain: number
  /** Whether a burn here may be attested before it is final. */
  readonly fast: boolean
  /** Typical seconds until a burn is attested: early, and final. */
  readonly fastSeconds: number
  readonly standardSeconds: number
}

/** A token that the service knows on one network. */
export type TokenInfo = {
  readonly symbol: string
  readonly name: string
  /** EIP-55 checksummed. */
  readonly address: Address
  readonly decimals: number
  /** Whether `transferWithAuthorization` exists, so that a payer needs no gas. */
  readonly eip3009: boolean
  /** The EIP-712 domain of signatures for the token; null if the service uses no such signatures. It differs per chain. */
  readonly eip712: { readonly name: string; readonly version: string } | null
}

const gwei = 1_000_000_000n
export const ether = {
  nativeCoin: { symbol: 'ETH', decimals: 18 },
  gasFees: { maxFee: 1_000n * gwei, priorityFee: 20n * gwei, assumed: 2n * gwei },
}
export const pol = {
  nativeCoin: { symbol: 'POL', decimals: 18 },
  gasFees: { maxFee: 20_000n * gwei, priorityFee: 1_000n * gwei, assumed: 100n * gwei },
}
export const noCoin = {
  nativeCoin: null,
  gasFees: { maxFee: 1_000n * gwei, priorityFee: 20n * gwei, assumed: 20n * gwei },
}

/** Circle's FiatToken 2.x. The domain's name is "USD Coin" or "USDC", by chain; the version is "2" everywhere. */
export function usdc(address: Address, domainName: 'USD Coin' | 'USDC'): TokenInfo {
  const eip712 = { name: domainName, version: '2' }
  return { symbol: 'USDC', name: 'USD Coin', address, decimals: 6, eip3009: true, eip712 }
}

/** Tether, without EIP-3009: it can be received and sent, but a payer's signature alone cannot move it. */
export function usdt(address: Address): TokenInfo {
  return { symbol: 'USDT', name: 'Tether USD', address, decimals: 6, eip3009: false, eip712: null }
}

/** A TIP-20 token of Tempo: an ERC-20 with memos, without EIP-3009. */
export function tip20(symbol: string, name: string, address: Address): TokenInfo {
  return { symbol, name, address, decimals: 6, eip3009: false, eip712: null }
}

/** At one address on every network of the OP Stack (specifications, predeploys, `GasPriceOracle`). */
export const gasPriceOracle: L1FeeOracle = { kind: 'op-stack', address: '0x420000000000000000000000000000000000000F' }

/** At one address on every Arbitrum chain (Arbitrum's documentation, precompiles, `ArbGasInfo`). */
export const arbGasInfo: L1FeeOracle = { kind: 'nitro', address: '0x000000000000000000000000000000000000006C' }

export const chainalysisOracle: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'

export const cctpEthereum = { domain: 0, fast: true, fastSeconds: 30, standardSeconds: 1_140 }
export const cctpBase = { domain: 6, fast: true, fastSeconds: 15, standardSeconds: 1_140 }

export const pathUsd = tip20('pathUSD', 'pathUSD', '0x20C0000000000000000000000000000000000000')
