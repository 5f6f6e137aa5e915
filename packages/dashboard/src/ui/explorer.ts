import { networkByName } from '@purser/protocol'
import type { Chain, Environment } from '@purser/sdk'

/** The network that a chain's name means: in the test environment a main network's name means its test network. */
export function actualNetwork(chain: string, environment: Environment): string {
  return environment === 'test' ? (networkByName(chain)?.testNetwork ?? chain) : chain
}

/** Returns the URL of an address or a transaction in the explorer of a chain; undefined if the chain has no known explorer. */
export function explorerUrl(
  chains: readonly Pick<Chain, 'name' | 'explorerUrl'>[],
  { network, kind, value }: { network: string; kind: 'address' | 'tx'; value: string },
): string | undefined {
  const base =
    chains.find(({ name }) => name === network || actualNetwork(name, 'test') === network)?.explorerUrl ?? undefined
  return base === undefined ? undefined : `${base}/${kind}/${encodeURIComponent(value)}`
}
