import type { Environment } from '@purser/sdk'

/** Block explorers, by the name of the network. Networks without a public one link nowhere. */
const explorers: Readonly<Record<string, string>> = {
  base: 'https://basescan.org',
  'base-sepolia': 'https://sepolia.basescan.org',
  ethereum: 'https://etherscan.io',
  'eth-sepolia': 'https://sepolia.etherscan.io',
  optimism: 'https://optimistic.etherscan.io',
  arbitrum: 'https://arbiscan.io',
  polygon: 'https://polygonscan.com',
  tempo: 'https://explore.tempo.xyz',
  'tempo-moderato': 'https://explore.moderato.tempo.xyz',
  'optimism-sepolia': 'https://sepolia-optimism.etherscan.io',
  'arbitrum-sepolia': 'https://sepolia.arbiscan.io',
  'polygon-amoy': 'https://amoy.polygonscan.com',
}

const testNetworks: Readonly<Record<string, string>> = {
  base: 'base-sepolia',
  ethereum: 'eth-sepolia',
  optimism: 'optimism-sepolia',
  arbitrum: 'arbitrum-sepolia',
  polygon: 'polygon-amoy',
  tempo: 'tempo-moderato',
}

/** The network that a chain's name means: in the test environment a main network's name means its test network. */
export function actualNetwork(chain: string, environment: Environment): string {
  return environment === 'test' ? (testNetworks[chain] ?? chain) : chain
}

const ownMachine = /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\])$/

/**
 * Where the explorer of the network shows an address or a transaction; undefined where there is none. A service on the reader's own machine
 * has its own chain under a test network's name, as `npm start` has: no public explorer knows it.
 */
export function explorerUrl(
  network: string,
  { kind, value, host }: { kind: 'address' | 'tx'; value: string; host: string },
): string | undefined {
  if (ownMachine.test(host)) return undefined
  const base = explorers[network]
  return base === undefined ? undefined : `${base}/${kind}/${encodeURIComponent(value)}`
}
