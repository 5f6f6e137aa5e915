import type { Address } from './address.ts'

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

/** The chain names of the public API. */
export type Chain = (typeof chains)[number]

/**
 * The names of all networks. The last three are no chain names of the public API: the test environment reaches them by
 * the name of their mainnet.
 */
export type NetworkName = Chain | 'optimism-sepolia' | 'arbitrum-sepolia' | 'polygon-amoy'

/**
 * When a deposit counts: as soon as its block is not above the node's block with this tag (block parameter of
 * JSON-RPC), or as soon as `depth` blocks, its own included, are on the chain.
 */
export type DepositFinality = { readonly tag: 'safe' | 'finalized' } | { readonly depth: number }

/**
 * `op-stack`: the predeploy `GasPriceOracle`; a transaction pays for its bytes in addition to gas. `nitro`: Arbitrum's precompile
 * `ArbGasInfo`; the bytes take gas from the gas limit before the transaction runs, and it is refused where the limit is lower.
 */
export type L1FeeOracle = { readonly kind: 'op-stack' | 'nitro'; readonly address: Address }

/** A network and its constants. */
export type Network = {
  readonly name: NetworkName
  readonly chainId: number
  readonly caip2: `eip155:${number}`
  /** Its name in x402 version 1; null if it has none there. */
  readonly x402V1Name: string | null
  readonly isTestnet: boolean
  /** The coin that pays for gas; null if gas is paid in stablecoins and `eth_getBalance` means nothing. */
  readonly nativeCoin: { readonly symbol: string; readonly decimals: number } | null
  readonly blockTimeMs: number
  /** Blocks until a transaction counts as settled, its own included: 1 means as soon as it is in a block. */
  readonly confirmationDepth: number
  readonly depositFinality: DepositFinality
  readonly settlesEip3009: boolean
  /** The contract that returns what the bytes of a transaction cost on Ethereum; null if a transaction pays for gas alone. */
  readonly l1FeeOracle: L1FeeOracle | null
  /** The public block explorer: it shows a transaction at `/tx/<hash>` and an account at `/address/<address>`. */
  readonly explorerUrl: string
  readonly tokens: readonly TokenInfo[]
}

/**
 * Whether the network is a Tempo network: it has no coin, and fees are paid in tokens.
 *
 * @example
 * isTempo(networkByName('tempo')) // true
 */
export function isTempo({ nativeCoin }: Pick<Network, 'nativeCoin'>): boolean {
  return nativeCoin === null
}

/**
 * Whether a block is final as soon as it has the network's `confirmationDepth`. On other networks it may be reorganized
 * until the chain marks it as safe or final, which `depositFinality` waits for.
 *
 * @example
 * isFinalAtDepth(networkByName('base')) // false
 */
export function isFinalAtDepth({ depositFinality, confirmationDepth }: Network): boolean {
  return 'depth' in depositFinality && depositFinality.depth <= confirmationDepth
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
  /**
   * The EIP-712 domain of signatures for the token; null if the service uses no such signatures. It differs per chain.
   */
  readonly eip712: { readonly name: string; readonly version: string } | null
}

const ether = { symbol: 'ETH', decimals: 18 }
const pol = { symbol: 'POL', decimals: 18 }

/** Circle's FiatToken 2.x. The domain's name is "USD Coin" or "USDC", by chain; the version is "2" everywhere. */
function usdc(address: Address, domainName: 'USD Coin' | 'USDC'): TokenInfo {
  const eip712 = { name: domainName, version: '2' }
  return { symbol: 'USDC', name: 'USD Coin', address, decimals: 6, eip3009: true, eip712 }
}

/** Tether, without EIP-3009: it can be received and sent, but a payer's signature alone cannot move it. */
function usdt(address: Address): TokenInfo {
  return { symbol: 'USDT', name: 'Tether USD', address, decimals: 6, eip3009: false, eip712: null }
}

/** A TIP-20 token of Tempo: an ERC-20 with memos, without EIP-3009. */
function tip20(symbol: string, name: string, address: Address): TokenInfo {
  return { symbol, name, address, decimals: 6, eip3009: false, eip712: null }
}

/** At one address on every network of the OP Stack (specifications, predeploys, `GasPriceOracle`). */
const gasPriceOracle: L1FeeOracle = { kind: 'op-stack', address: '0x420000000000000000000000000000000000000F' }

/** At one address on every Arbitrum chain (Arbitrum's documentation, precompiles, `ArbGasInfo`). */
const arbGasInfo: L1FeeOracle = { kind: 'nitro', address: '0x000000000000000000000000000000000000006C' }

const pathUsd = tip20('pathUSD', 'pathUSD', '0x20C0000000000000000000000000000000000000')

/**
 * All supported networks. `confirmationDepth` is for payments of small amounts. Rollups with one sequencer have
 * reorganized only when a sequencer failed over, which concerns a few seconds of blocks. Ethereum has reorganized by
 * one or two blocks since the merge. Tempo's blocks are final at once. Test networks have the shortest depth, because
 * their money has no value. Deposits can be of any amount, so they wait longer: for the network's `safe` block (on
 * Ethereum the justified block, after about six minutes; on a rollup, a batch that is on Ethereum), or for the
 * `finalized` block if it takes only seconds (Polygon's milestones, Tempo's consensus). Sources: @x402/evm 2.27.0 (v1
 * names, USDC addresses and domains), Circle's and Tether's published addresses, Tempo's documentation.
 */
export const networks: readonly Network[] = [
  {
    name: 'base',
    chainId: 8453,
    caip2: 'eip155:8453',
    x402V1Name: 'base',
    isTestnet: false,
    nativeCoin: ether,
    blockTimeMs: 2_000,
    confirmationDepth: 5,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://basescan.org',
    tokens: [usdc('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin')],
  },
  {
    name: 'ethereum',
    chainId: 1,
    caip2: 'eip155:1',
    x402V1Name: 'ethereum',
    isTestnet: false,
    nativeCoin: ether,
    blockTimeMs: 12_000,
    confirmationDepth: 3,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://etherscan.io',
    tokens: [
      usdc('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 'USD Coin'),
      usdt('0xdAC17F958D2ee523a2206206994597C13D831ec7'),
    ],
  },
  {
    name: 'optimism',
    chainId: 10,
    caip2: 'eip155:10',
    x402V1Name: null,
    isTestnet: false,
    nativeCoin: ether,
    blockTimeMs: 2_000,
    confirmationDepth: 5,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://optimistic.etherscan.io',
    tokens: [
      usdc('0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85', 'USD Coin'),
      usdt('0x94b008aA00579c1307B0EF2c499aD98a8ce58e58'),
    ],
  },
  {
    name: 'arbitrum',
    chainId: 42161,
    caip2: 'eip155:42161',
    x402V1Name: null,
    isTestnet: false,
    nativeCoin: ether,
    blockTimeMs: 250,
    confirmationDepth: 20,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: arbGasInfo,
    explorerUrl: 'https://arbiscan.io',
    tokens: [usdc('0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin')],
  },
  {
    name: 'polygon',
    chainId: 137,
    caip2: 'eip155:137',
    x402V1Name: 'polygon',
    isTestnet: false,
    nativeCoin: pol,
    blockTimeMs: 2_000,
    confirmationDepth: 10,
    depositFinality: { tag: 'finalized' },
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://polygonscan.com',
    tokens: [usdc('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin')],
  },
  {
    name: 'tempo',
    chainId: 4217,
    caip2: 'eip155:4217',
    x402V1Name: null,
    isTestnet: false,
    nativeCoin: null,
    blockTimeMs: 600,
    confirmationDepth: 1,
    depositFinality: { tag: 'finalized' },
    settlesEip3009: false,
    l1FeeOracle: null,
    explorerUrl: 'https://explore.tempo.xyz',
    tokens: [tip20('USDC_E', 'Bridged USDC', '0x20C000000000000000000000b9537d11c60E8b50'), pathUsd],
  },
  {
    name: 'base-sepolia',
    chainId: 84532,
    caip2: 'eip155:84532',
    x402V1Name: 'base-sepolia',
    isTestnet: true,
    nativeCoin: ether,
    blockTimeMs: 2_000,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://sepolia.basescan.org',
    tokens: [usdc('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC')],
  },
  {
    name: 'eth-sepolia',
    chainId: 11155111,
    caip2: 'eip155:11155111',
    x402V1Name: 'sepolia',
    isTestnet: true,
    nativeCoin: ether,
    blockTimeMs: 12_000,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://sepolia.etherscan.io',
    tokens: [usdc('0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238', 'USDC')],
  },
  {
    name: 'tempo-moderato',
    chainId: 42431,
    caip2: 'eip155:42431',
    x402V1Name: null,
    isTestnet: true,
    nativeCoin: null,
    blockTimeMs: 600,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: false,
    l1FeeOracle: null,
    explorerUrl: 'https://explore.moderato.tempo.xyz',
    tokens: [
      pathUsd,
      tip20('AlphaUSD', 'AlphaUSD', '0x20C0000000000000000000000000000000000001'),
      tip20('BetaUSD', 'BetaUSD', '0x20C0000000000000000000000000000000000002'),
      tip20('ThetaUSD', 'ThetaUSD', '0x20C0000000000000000000000000000000000003'),
    ],
  },
  {
    name: 'optimism-sepolia',
    chainId: 11155420,
    caip2: 'eip155:11155420',
    x402V1Name: null,
    isTestnet: true,
    nativeCoin: ether,
    blockTimeMs: 2_000,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://sepolia-optimism.etherscan.io',
    tokens: [usdc('0x5fd84259d66Cd46123540766Be93DFE6D43130D7', 'USDC')],
  },
  {
    name: 'arbitrum-sepolia',
    chainId: 421614,
    caip2: 'eip155:421614',
    x402V1Name: null,
    isTestnet: true,
    nativeCoin: ether,
    blockTimeMs: 250,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: true,
    l1FeeOracle: arbGasInfo,
    explorerUrl: 'https://sepolia.arbiscan.io',
    tokens: [usdc('0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', 'USD Coin')],
  },
  {
    name: 'polygon-amoy',
    chainId: 80002,
    caip2: 'eip155:80002',
    x402V1Name: 'polygon-amoy',
    isTestnet: true,
    nativeCoin: pol,
    blockTimeMs: 2_000,
    confirmationDepth: 1,
    depositFinality: { depth: 1 },
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://amoy.polygonscan.com',
    tokens: [usdc('0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', 'USDC')],
  },
]
