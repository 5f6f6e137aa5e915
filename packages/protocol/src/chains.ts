import type { TokenInfo } from './network-facts.ts'
import { type Chain, chains, type Network, networks } from './networks.ts'

/** The environment of a request: test money or real money. */
export type Environment = 'test' | 'live'

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
 * Whether a text is a chain name of the public API.
 *
 * @example
 * isChain('base') // true
 * isChain('bitcoin') // false
 */
export function isChain(text: string): text is Chain {
  return chains.some((chain) => chain === text)
}

/**
 * Returns the network of a chain name. In the test environment every name means a test network, so that a test key can
 * never move real money. In the live environment a test chain returns `undefined`, because test money must not pay for
 * real things.
 *
 * @example
 * resolveNetwork('base', 'test')?.name // 'base-sepolia'
 * resolveNetwork('base', 'live')?.name // 'base'
 */
export function resolveNetwork(chain: Chain, environment: Environment): Network | undefined {
  const network = byName.get(chain)
  if (environment === 'test') return network && byName.get(network.testNetwork)
  return network?.isTestnet === false ? network : undefined
}

/**
 * Returns the name of a network in the public API: its own, or that of the main network whose test network it is.
 *
 * @example
 * chainNameOf(networkByName('base-sepolia')) // 'base-sepolia'
 * chainNameOf(networkByName('polygon-amoy')) // 'polygon'
 */
export function chainNameOf({ name }: Pick<Network, 'name'>): Chain {
  const found = isChain(name) ? name : chains.find((chain) => byName.get(chain)?.testNetwork === name)
  if (found === undefined) throw new Error(`no chain name means ${name}`)
  return found
}

/**
 * Returns the network with this CAIP-2 id, such as `eip155:8453`, or `undefined` if it is not supported.
 *
 * @example
 * networkByCaip2('eip155:84532')?.name // 'base-sepolia'
 */
export function networkByCaip2(caip2: string): Network | undefined {
  return byCaip2.get(caip2)
}

/**
 * Returns the network with this name in x402 version 1, or `undefined` if there is none. Optimism and Arbitrum have no
 * such name.
 *
 * @example
 * networkByX402V1Name('base-sepolia')?.caip2 // 'eip155:84532'
 */
export function networkByX402V1Name(name: string): Network | undefined {
  return byX402V1Name.get(name)
}

/**
 * Returns the network with this `name`, or `undefined` if there is none.
 *
 * @example
 * networkByName('base').chainId // 8453
 */
export function networkByName(name: string): Network | undefined {
  return byName.get(name)
}

/**
 * Returns the network with this `name`. Throws an `Error` if there is none.
 *
 * @example
 * requireNetwork('base').chainId // 8453
 */
export function requireNetwork(name: string): Network {
  const network = networkByName(name)
  if (network === undefined) throw new Error(`unknown network: ${name}`)
  return network
}

/**
 * Returns the network's token with this symbol (case-sensitive), or `undefined` if there is none.
 *
 * @example
 * tokenBySymbol(networkByName('base'), 'USDC')?.decimals // 6
 */
export function tokenBySymbol(network: Network, symbol: string): TokenInfo | undefined {
  return network.tokens.find((token) => token.symbol === symbol)
}

/**
 * Returns the network's token at this address, in any letter case, or `undefined` if there is none.
 *
 * @example
 * tokenByAddress(networkByName('base'), '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913')?.symbol // 'USDC'
 */
export function tokenByAddress(network: Network, address: string): TokenInfo | undefined {
  return byTokenAddress.get(`${network.caip2}/${address.toLowerCase()}`)
}
