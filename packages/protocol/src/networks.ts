import type { Address } from './address.ts'

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

/** Fees for gas in wei per unit of gas; on Tempo in attodollars. */
type GasFees = {
  /** The highest fees ever offered, so that a node that reports more and more cannot drain an account. */
  readonly maxFee: bigint
  readonly priorityFee: bigint
  /** Assumed before any node has reported: higher than the network usually is, so that no budget is exceeded. */
  readonly assumed: bigint
}

/** The network in Circle's CCTP v2 (developers.circle.com, "Supported chains and domains" and "Block confirmations"). */
type CctpDomain = {
  readonly domain: number
  /** Whether a burn here may be attested before it is final. */
  readonly fast: boolean
  /** Typical seconds until a burn is attested: early, and final. */
  readonly fastSeconds: number
  readonly standardSeconds: number
}

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
const ether = {
  nativeCoin: { symbol: 'ETH', decimals: 18 },
  gasFees: { maxFee: 1_000n * gwei, priorityFee: 20n * gwei, assumed: 2n * gwei },
}
const pol = {
  nativeCoin: { symbol: 'POL', decimals: 18 },
  gasFees: { maxFee: 20_000n * gwei, priorityFee: 1_000n * gwei, assumed: 100n * gwei },
}
const noCoin = {
  nativeCoin: null,
  gasFees: { maxFee: 1_000n * gwei, priorityFee: 20n * gwei, assumed: 20n * gwei },
}

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

const chainalysisOracle: Address = '0x40C57923924B5c5c5455c48D93317139ADDaC8fb'

const cctpEthereum = { domain: 0, fast: true, fastSeconds: 30, standardSeconds: 1_140 }
const cctpBase = { domain: 6, fast: true, fastSeconds: 15, standardSeconds: 1_140 }

const noPartners = { partners: [], cctp: null, acrossSpokePool: null, sanctionsOracle: null } as const
const testnet = { ...noPartners, isTestnet: true, confirmationDepth: 1, depositFinality: { depth: 1 } } as const

const pathUsd = tip20('pathUSD', 'pathUSD', '0x20C0000000000000000000000000000000000000')

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
