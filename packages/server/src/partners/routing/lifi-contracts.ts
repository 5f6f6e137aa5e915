import { type Address, networks } from '@purser/protocol'

/**
 * LI.FI's diamond, the only LI.FI contract that is called and approved, with one address on all supported chains (lifinance/contracts,
 * deployments/{mainnet,base,optimism,arbitrum,polygon}.json, `LiFiDiamond`).
 */
export const lifiDiamond: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE'

export function spokePoolOn(chainId: number): Address | undefined {
  return networks.find((network) => network.chainId === chainId)?.acrossSpokePool ?? undefined
}

/** All contracts that LI.FI routes use. */
export const lifiContracts: readonly Address[] = [
  lifiDiamond,
  ...networks.flatMap(({ acrossSpokePool }) => acrossSpokePool ?? []),
]
