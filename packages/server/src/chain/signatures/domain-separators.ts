import { domainSeparator, type Keccak, type Network, permit2DomainSeparator, type TokenInfo } from '@purser/protocol'

/** EIP-712 domain separators of a process, each hashed once. */
export interface DomainSeparators {
  /** Returns the separator under which a token checks signatures. Throws if it checks none. */
  ofToken(network: Network, token: TokenInfo): Uint8Array
  /** Returns Permit2's separator on a network. */
  ofPermit2(network: Network): Uint8Array
}

export function createDomainSeparators(keccak: Keccak): DomainSeparators {
  const known = new Map<string, Uint8Array>()
  const once = (key: string, hash: () => Uint8Array): Uint8Array => {
    const separator = known.get(key) ?? hash()
    known.set(key, separator)
    return separator
  }
  return {
    ofToken: (network, token) =>
      once(`${network.caip2}/${token.address}`, () => tokenSeparator(network, token, keccak)),
    ofPermit2: ({ chainId }) => once(`${chainId}`, () => permit2DomainSeparator(chainId, keccak)),
  }
}

function tokenSeparator(network: Network, token: TokenInfo, keccak: Keccak): Uint8Array {
  if (token.eip712 === null) throw new Error(`${token.symbol} on ${network.name} has no EIP-712 domain`)
  return domainSeparator({ ...token.eip712, chainId: network.chainId, verifyingContract: token.address }, keccak)
}
