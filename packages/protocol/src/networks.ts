import type { Address } from './address.ts'
import {
  arbGasInfo,
  type CctpDomain,
  cctpBase,
  cctpEthereum,
  chainalysisOracle,
  type DepositFinality,
  ether,
  type GasFees,
  gasPriceOracle,
  type L1FeeOracle,
  noCoin,
  pathUsd,
  pol,
  type TokenInfo,
  tip20,
  usdc,
  usdt,
} from './network-facts.ts'

/** The chain names of the public API. */
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
 * The names of all networks. The last three are no chain names of the public API: the test environment reaches them by the name of their mainnet.
 */
export type NetworkName = Chain | 'optimism-sepolia' | 'arbitrum-sepolia' | 'polygon-amoy'

/** A network and its constants. */
export type Network = {
  readonly name: NetworkName
  /** The network that its name means in the test environment; its own name if it is one. */
  readonly testNetwork: NetworkName
  readonly chainId: number
  readonly caip2: `eip155:${number}`
  /** Its name in x402 version 1; null if it has none there. */
  readonly x402V1Name: string | null
  /** Set if the last version 1 SDK (x402 1.2.0) can read it; the SDK throws at a whole challenge that names another network. */
  readonly isInX402V1Sdk?: true
  readonly isTestnet: boolean
  /** The coin that pays for gas; null if gas is paid in stablecoins and `eth_getBalance` means nothing. */
  readonly nativeCoin: { readonly symbol: string; readonly decimals: number } | null
  readonly gasFees: GasFees
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
  /** Routing and off-ramp partners that serve it, under the same name, with the contracts that our checks know. */
  readonly partners: readonly ('bridge' | 'lifi' | 'relay')[]
  /** Null if CCTP does not serve it. */
  readonly cctp: CctpDomain | null
  /** Across' own contract, which takes what LI.FI bridges over Across (lifinance/contracts, config/across.json). */
  readonly acrossSpokePool: Address | null
  /** Chainalysis' sanctions oracle, with an identical list on each network (go.chainalysis.com/chainalysis-oracle-docs.html). */
  readonly sanctionsOracle: Address | null
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

const noPartners = { partners: [], cctp: null, acrossSpokePool: null, sanctionsOracle: null } as const
const testnet = { ...noPartners, isTestnet: true, confirmationDepth: 1, depositFinality: { depth: 1 } } as const

/**
 * All supported networks. `confirmationDepth` is for payments of small amounts. Rollups with one sequencer have reorganized only when a sequencer
 * failed over, which concerns a few seconds of blocks. Ethereum has reorganized by one or two blocks since the merge. Tempo's blocks are final at
 * once. Test networks have the shortest depth, because their money has no value. Deposits can be of any amount, so they wait longer: for the
 * network's `safe` block (on Ethereum the justified block, after about six minutes; on a rollup, a batch that is on Ethereum), or for the
 * `finalized` block if it takes only seconds (Polygon's milestones, Tempo's consensus). Sources: @x402/evm 2.27.0 (v1 names, USDC addresses and
 * domains), Circle's and Tether's published addresses, Tempo's documentation.
 */
export const networks: readonly Network[] = [
  {
    name: 'base',
    testNetwork: 'base-sepolia',
    chainId: 8453,
    caip2: 'eip155:8453',
    x402V1Name: 'base',
    isInX402V1Sdk: true,
    isTestnet: false,
    ...ether,
    blockTimeMs: 2_000,
    confirmationDepth: 5,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://basescan.org',
    tokens: [usdc('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 'USD Coin')],
    partners: ['bridge', 'lifi', 'relay'],
    cctp: cctpBase,
    acrossSpokePool: '0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64',
    sanctionsOracle: '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B',
  },
  {
    name: 'ethereum',
    testNetwork: 'eth-sepolia',
    chainId: 1,
    caip2: 'eip155:1',
    x402V1Name: 'ethereum',
    isTestnet: false,
    ...ether,
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
    partners: ['bridge', 'lifi', 'relay'],
    cctp: cctpEthereum,
    acrossSpokePool: '0x5c7BCd6E7De5423a257D81B442095A1a6ced35C5',
    sanctionsOracle: chainalysisOracle,
  },
  {
    name: 'optimism',
    testNetwork: 'optimism-sepolia',
    chainId: 10,
    caip2: 'eip155:10',
    x402V1Name: null,
    isTestnet: false,
    ...ether,
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
    partners: ['bridge', 'lifi', 'relay'],
    cctp: { domain: 2, fast: true, fastSeconds: 15, standardSeconds: 1_140 },
    acrossSpokePool: '0x6f26Bf09B1C792e3228e5467807a900A503c0281',
    sanctionsOracle: chainalysisOracle,
  },
  {
    name: 'arbitrum',
    testNetwork: 'arbitrum-sepolia',
    chainId: 42161,
    caip2: 'eip155:42161',
    x402V1Name: null,
    isTestnet: false,
    ...ether,
    blockTimeMs: 250,
    confirmationDepth: 20,
    depositFinality: { tag: 'safe' },
    settlesEip3009: true,
    l1FeeOracle: arbGasInfo,
    explorerUrl: 'https://arbiscan.io',
    tokens: [usdc('0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 'USD Coin')],
    partners: ['bridge', 'lifi', 'relay'],
    cctp: { domain: 3, fast: true, fastSeconds: 15, standardSeconds: 1_140 },
    acrossSpokePool: '0xe35e9842fceaCA96570B734083f4a58e8F7C5f2A',
    sanctionsOracle: chainalysisOracle,
  },
  {
    name: 'polygon',
    testNetwork: 'polygon-amoy',
    chainId: 137,
    caip2: 'eip155:137',
    x402V1Name: 'polygon',
    isInX402V1Sdk: true,
    isTestnet: false,
    ...pol,
    blockTimeMs: 2_000,
    confirmationDepth: 10,
    depositFinality: { tag: 'finalized' },
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://polygonscan.com',
    tokens: [usdc('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 'USD Coin')],
    partners: ['bridge', 'lifi', 'relay'],
    // Final within seconds, so a fast transfer gains nothing.
    cctp: { domain: 7, fast: false, fastSeconds: 15, standardSeconds: 30 },
    acrossSpokePool: '0x9295ee1d8C5b022Be115A2AD3c30C72E34e7F096',
    sanctionsOracle: chainalysisOracle,
  },
  {
    name: 'tempo',
    testNetwork: 'tempo-moderato',
    chainId: 4217,
    caip2: 'eip155:4217',
    x402V1Name: null,
    isTestnet: false,
    ...noCoin,
    blockTimeMs: 600,
    confirmationDepth: 1,
    depositFinality: { tag: 'finalized' },
    settlesEip3009: false,
    l1FeeOracle: null,
    explorerUrl: 'https://explore.tempo.xyz',
    tokens: [tip20('USDC_E', 'Bridged USDC', '0x20C000000000000000000000b9537d11c60E8b50'), pathUsd],
    ...noPartners,
    partners: ['relay'],
  },
  {
    name: 'base-sepolia',
    testNetwork: 'base-sepolia',
    chainId: 84532,
    caip2: 'eip155:84532',
    x402V1Name: 'base-sepolia',
    isInX402V1Sdk: true,
    ...testnet,
    ...ether,
    blockTimeMs: 2_000,
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://sepolia.basescan.org',
    tokens: [usdc('0x036CbD53842c5426634e7929541eC2318f3dCF7e', 'USDC')],
    cctp: cctpBase,
  },
  {
    name: 'eth-sepolia',
    testNetwork: 'eth-sepolia',
    chainId: 11155111,
    caip2: 'eip155:11155111',
    x402V1Name: 'sepolia',
    ...testnet,
    ...ether,
    blockTimeMs: 12_000,
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://sepolia.etherscan.io',
    tokens: [usdc('0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238', 'USDC')],
    cctp: cctpEthereum,
  },
  {
    name: 'tempo-moderato',
    testNetwork: 'tempo-moderato',
    chainId: 42431,
    caip2: 'eip155:42431',
    x402V1Name: null,
    ...testnet,
    ...noCoin,
    blockTimeMs: 600,
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
    testNetwork: 'optimism-sepolia',
    chainId: 11155420,
    caip2: 'eip155:11155420',
    x402V1Name: null,
    ...testnet,
    ...ether,
    blockTimeMs: 2_000,
    settlesEip3009: true,
    l1FeeOracle: gasPriceOracle,
    explorerUrl: 'https://sepolia-optimism.etherscan.io',
    tokens: [usdc('0x5fd84259d66Cd46123540766Be93DFE6D43130D7', 'USDC')],
  },
  {
    name: 'arbitrum-sepolia',
    testNetwork: 'arbitrum-sepolia',
    chainId: 421614,
    caip2: 'eip155:421614',
    x402V1Name: null,
    ...testnet,
    ...ether,
    blockTimeMs: 250,
    settlesEip3009: true,
    l1FeeOracle: arbGasInfo,
    explorerUrl: 'https://sepolia.arbiscan.io',
    tokens: [usdc('0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d', 'USD Coin')],
  },
  {
    name: 'polygon-amoy',
    testNetwork: 'polygon-amoy',
    chainId: 80002,
    caip2: 'eip155:80002',
    x402V1Name: 'polygon-amoy',
    isInX402V1Sdk: true,
    ...testnet,
    ...pol,
    blockTimeMs: 2_000,
    settlesEip3009: true,
    l1FeeOracle: null,
    explorerUrl: 'https://amoy.polygonscan.com',
    tokens: [usdc('0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582', 'USDC')],
  },
]
