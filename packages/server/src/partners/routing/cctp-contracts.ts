import type { Address, Network } from '@purser/protocol'

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
