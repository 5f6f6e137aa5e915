import { randomBytes } from 'node:crypto'
import type { DevChain } from '@purser/devnet'
import type { Config } from '../src/config.ts'
import type { GasPrices } from '../src/features/plans/index.ts'

/** The configuration of the service in tests. */
export function testConfig(
  databaseUrl: string,
  options: {
    readonly chains?: readonly DevChain[]
    readonly rpcUrls?: Config['rpcUrls']
    readonly config?: Partial<Config>
    readonly filesDirectory: string
  },
): Config {
  const rpcUrls = Object.fromEntries((options.chains ?? []).map((chain) => [chain.network, [chain.rpcUrl]]))
  return {
    role: 'all',
    databaseUrl,
    databaseConnectionsMax: 16,
    host: '127.0.0.1',
    port: 0,
    metricsPort: undefined,
    baseUrl: 'http://purser.test',
    dashboardUrl: 'http://dashboard.test',
    environments: ['test', 'live'],
    keyEncryption: { base64: keyBase64 },
    createKeyEncryptionKey: false,
    rpcUrls: { ...rpcUrls, ...options.rpcUrls },
    rpcTimeoutMs: 4_000,
    eip6492Factories: [],
    logLevel: 'silent',
    keyLimit: { perSecond: 1_000_000, burst: 1_000_000 },
    addressLimit: { perSecond: 1_000_000, burst: 1_000_000 },
    trustProxy: false,
    // An anvil that loses one of several transactions gets it again, at a higher fee, after some twelve seconds.
    settleWaitMs: 25_000,
    transferWaitMs: 25_000,
    facilitatorWaitMs: 25_000,
    settleMicroUsdMin: 1_000n,
    settleNanoUsdPerDayMax: 10n ** 15n,
    verifiedSecondsMax: 3_600,
    sponsorTempoFees: false,
    sandboxScreening: true,
    testClock: true,
    challengesPerCallerMax: 20,
    vaultTokensMax: 10_000,
    webhooksAllowPrivate: true,
    files: { directory: options.filesDirectory },
    ...options.config,
  }
}

/** A constant gas price, so that a budget counts gas. */
export const oneNanoUsdPerGas: GasPrices = {
  costOf: (_, gas) => gas,
  knownCostOf: (_, gas) => gas,
  recentReads: async () => undefined,
  worthOf: (_, wei) => wei / 1_000_000_000n,
  leastCostOf: (_, gas) => gas,
  lowestKnownCostOf: (_, gas) => gas,
}

const keyBase64 = randomBytes(32).toString('base64')
