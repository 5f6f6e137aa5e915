import type { Address } from './address.ts'
import { networks } from './networks.ts'

/** The chain names of the public API. */
export type Chain = (typeof chains)[number]

/** The chain names of the public API, in the document's order. */
export const chains = [
  'base',
  'ethereum',
  'optimism',
  'arbitrum',
  'polygon',
  'tempo',
  'base-sepolia',
  'eth-sepolia',
  'tempo-moderato',
] as const

/** The names of the networks that exist; three of them are reached only from the test environment, by a mainnet name. */
export type NetworkName = Chain | 'optimism-sepolia' | 'arbitrum-sepolia' | 'polygon-amoy'

/** The environment of a request: test money or real money. */
export type Environment = 'test' | 'live'

/** A token that the service knows on one network. */
export type TokenInfo = {
  readonly symbol: string
  readonly name: string
  /** EIP-55 checksummed. */
  readonly address: Address
  readonly decimals: number
  /** Whether `transferWithAuthorization` exists, so that a payer needs no gas. */
  readonly eip3009: boolean
  /** The domain under which the token checks signatures; null where it checks none that we use. It differs per chain. */
  readonly eip712: { readonly name: string; readonly version: string } | null
}

/**
 * When a deposit counts: once its block is at or below the one that the node calls by this tag (the block parameter of JSON-RPC), or,
 * where depth is enough, once that many blocks are on the chain, its own included.
 */
export type DepositFinality = { readonly tag: 'safe' | 'finalized' } | { readonly depth: number }

/** One network, as data. */
export type Network = {
  readonly name: NetworkName
  readonly chainId: number
  readonly caip2: `eip155:${number}`
  /** The name that x402 version 1 has for it; null where version 1 cannot speak of it. */
  readonly x402V1Name: string | null
  readonly isTestnet: boolean
  /** The coin that pays gas; null where gas is paid in stablecoins and `eth_getBalance` means nothing. */
  readonly nativeCoin: { readonly symbol: string; readonly decimals: number } | null
  readonly blockTimeMs: number
  /** Blocks until a transaction counts as settled, its own included: 1 means as soon as it is in a block. */
  readonly confirmationDepth: number
  readonly depositFinality: DepositFinality
  readonly settlesEip3009: boolean
  /**
   * The contract that says what a transaction pays beside its gas for its bytes on Ethereum (OP Stack specifications, predeploy
   * `GasPriceOracle`); null where a transaction pays for gas alone.
   */
  readonly l1FeeOracle: Address | null
  readonly tokens: readonly TokenInfo[]
}

export { networks }

const testNetworkOf: Readonly<Record<Chain, NetworkName>> = {
  base: 'base-sepolia',
  ethereum: 'eth-sepolia',
  optimism: 'optimism-sepolia',
  arbitrum: 'arbitrum-sepolia',
  polygon: 'polygon-amoy',
  tempo: 'tempo-moderato',
  'base-sepolia': 'base-sepolia',
  'eth-sepolia': 'eth-sepolia',
  'tempo-moderato': 'tempo-moderato',
}

const byName = new Map<string, Network>(networks.map((network) => [network.name, network]))
const byCaip2 = new Map<string, Network>(networks.map((network) => [network.caip2, network]))
const byX402V1Name = new Map<string, Network>(
  networks.flatMap((network) => (network.x402V1Name === null ? [] : [[network.x402V1Name, network] as const])),
)
const byTokenAddress = new Map<string, TokenInfo>(
  networks.flatMap(({ caip2, tokens }) =>
    tokens.map((token) => [`${caip2}/${token.address.toLowerCase()}`, token] as const),
  ),
)

/**
 * Whether a text is one of the nine names of the public API.
 *
 * @example
 * isChain('base') // true
 * isChain('bitcoin') // false
 */
export function isChain(text: string): text is Chain {
  return chains.some((chain) => chain === text)
}

/**
 * The network that a chain name means. In the test environment every name means a test network, so that a test key can never
 * touch real money; a live key that names a test chain gets `undefined`, since play money must not pay for real things.
 *
 * @example
 * resolveNetwork('base', 'test')?.name // 'base-sepolia'
 * resolveNetwork('base', 'live')?.name // 'base'
 */
export function resolveNetwork(chain: Chain, environment: Environment): Network | undefined {
  if (environment === 'test') return byName.get(testNetworkOf[chain])
  const network = byName.get(chain)
  return network?.isTestnet === false ? network : undefined
}

/**
 * The network of a CAIP-2 id such as `eip155:8453`, if it is one of ours.
 *
 * @example
 * networkByCaip2('eip155:84532')?.name // 'base-sepolia'
 */
export function networkByCaip2(caip2: string): Network | undefined {
  return byCaip2.get(caip2)
}

/**
 * The network that x402 version 1 calls by this name, if it is one of ours. Optimism and Arbitrum have no such name.
 *
 * @example
 * networkByX402V1Name('base-sepolia')?.caip2 // 'eip155:84532'
 */
export function networkByX402V1Name(name: string): Network | undefined {
  return byX402V1Name.get(name)
}

/**
 * The network with this name of ours.
 *
 * @example
 * networkByName('base').chainId // 8453
 */
export function networkByName(name: string): Network | undefined {
  return byName.get(name)
}

/**
 * The token that a network knows by this symbol; case matters.
 *
 * @example
 * tokenBySymbol(networkByName('base'), 'USDC')?.decimals // 6
 */
export function tokenBySymbol(network: Network, symbol: string): TokenInfo | undefined {
  return network.tokens.find((token) => token.symbol === symbol)
}

/**
 * The token at this address of the network, whatever the address's letter case.
 *
 * @example
 * tokenByAddress(networkByName('base'), '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913')?.symbol // 'USDC'
 */
export function tokenByAddress(network: Network, address: string): TokenInfo | undefined {
  return byTokenAddress.get(`${network.caip2}/${address.toLowerCase()}`)
}
