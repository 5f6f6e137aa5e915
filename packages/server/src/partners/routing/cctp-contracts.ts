import type { Address, Network } from '@purser/protocol'

interface CctpChain {
  readonly domain: number
  /** Whether a burn here may be attested before it is final. */
  readonly fast: boolean
  /** Typical seconds until a burn is attested: early, and final. */
  readonly fastSeconds: number
  readonly standardSeconds: number
}

/** Circle's own numbers for the chains that CCTP v2 serves (developers.circle.com, "Supported chains and domains" and "Block confirmations"). */
const chains = new Map<string, CctpChain>([
  ['ethereum', { domain: 0, fast: true, fastSeconds: 30, standardSeconds: 1_140 }],
  ['eth-sepolia', { domain: 0, fast: true, fastSeconds: 30, standardSeconds: 1_140 }],
  ['optimism', { domain: 2, fast: true, fastSeconds: 15, standardSeconds: 1_140 }],
  ['arbitrum', { domain: 3, fast: true, fastSeconds: 15, standardSeconds: 1_140 }],
  ['base', { domain: 6, fast: true, fastSeconds: 15, standardSeconds: 1_140 }],
  ['base-sepolia', { domain: 6, fast: true, fastSeconds: 15, standardSeconds: 1_140 }],
  // Final within seconds, so a fast transfer gains nothing.
  ['polygon', { domain: 7, fast: false, fastSeconds: 15, standardSeconds: 30 }],
])

export function cctpChainOf({ name }: Network): CctpChain | undefined {
  return chains.get(name)
}

export function cctpDomainOf(network: Network): number | undefined {
  return cctpChainOf(network)?.domain
}

/** The contracts have one address on all main networks and another on all test networks. */
export function cctpContracts({ isTestnet }: Pick<Network, 'isTestnet'>): {
  readonly tokenMessenger: Address
  readonly messageTransmitter: Address
} {
  return isTestnet
    ? {
        tokenMessenger: '0x8FE6B999Dc680CcFDD5Bf7EB0974218be2542DAA',
        messageTransmitter: '0xE737e5cEBEEBa77EFE34D4aa090756590b1CE275',
      }
    : {
        tokenMessenger: '0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d',
        messageTransmitter: '0x81D40F21F12A8F0E3252Bccb954D722d4c464B64',
      }
}
