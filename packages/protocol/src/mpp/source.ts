import { type Address, isAddress } from '../address.ts'

const sourcePattern = /^did:pkh:eip155:(0|[1-9]\d{0,15}):(0x[0-9a-fA-F]{40})$/

/** The account that a credential's `source` names: `did:pkh:eip155:<chain>:<address>` (did:pkh method, CAIP-10). */
export function formatPayerSource(payer: { readonly chainId: number; readonly address: Address }): string {
  return `did:pkh:eip155:${payer.chainId}:${payer.address}`
}

/** Reads a `source`; `undefined` for any other DID. It is the sender's claim: who pays is shown by the signature. */
export function parsePayerSource(source: string): { chainId: number; address: Address } | undefined {
  const [, chain = '', address = ''] = sourcePattern.exec(source) ?? []
  const chainId = Number(chain)
  return isAddress(address) && Number.isSafeInteger(chainId) ? { chainId, address } : undefined
}
