import type { Address } from '@purser/protocol'

/**
 * LI.FI's diamond, the only LI.FI contract that is called and approved, with one address on all supported chains (lifinance/contracts,
 * deployments/{mainnet,base,optimism,arbitrum,polygon}.json, `LiFiDiamond`).
 */
export const lifiDiamond: Address = '0x1231DEB6f5749EF6cE6943a275A1D3E7486F4EaE'

/** Across' own contract on each chain, which takes what AcrossFacetV4 bridges (lifinance/contracts, config/across.json). */
const spokePools = new Map<number, Address>([
  [1, '0x5c7BCd6E7De5423a257D81B442095A1a6ced35C5'],
  [8_453, '0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64'],
  [10, '0x6f26Bf09B1C792e3228e5467807a900A503c0281'],
  [42_161, '0xe35e9842fceaCA96570B734083f4a58e8F7C5f2A'],
  [137, '0x9295ee1d8C5b022Be115A2AD3c30C72E34e7F096'],
])

export function spokePoolOn(chainId: number): Address | undefined {
  return spokePools.get(chainId)
}

/** All contracts that LI.FI routes use. */
export const lifiContracts: readonly Address[] = [lifiDiamond, ...spokePools.values()]
