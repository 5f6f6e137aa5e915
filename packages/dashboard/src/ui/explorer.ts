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
}

/** Where the explorer of the network shows an address or a transaction; undefined where there is none. */
export function explorerUrl(network: string, kind: 'address' | 'tx', value: string): string | undefined {
  const base = explorers[network]
  return base === undefined ? undefined : `${base}/${kind}/${encodeURIComponent(value)}`
}
