import { type Address, isAddress } from '../address.ts'

const sourcePattern = /^did:pkh:eip155:(0|[1-9]\d{0,15}):(0x[0-9a-fA-F]{40})$/

/**
 * Formats the `source` of a credential, the payer's account: `did:pkh:eip155:<chain>:<address>` (did:pkh method,
 * CAIP-10).
 *
 * @example
 * formatPayerSource({ chainId: 8453, address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }) // 'did:pkh:eip155:8453:0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 */
export function formatPayerSource(payer: { readonly chainId: number; readonly address: Address }): string {
  return `did:pkh:eip155:${payer.chainId}:${payer.address}`
}

/**
 * Parses a `source`. Returns `undefined` for any other DID. It is an unverified claim: the signature proves who pays.
 *
 * @example
 * parsePayerSource('did:pkh:eip155:8453:0x036CbD53842c5426634e7929541eC2318f3dCF7e') // { chainId: 8453, address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 */
export function parsePayerSource(source: string): { chainId: number; address: Address } | undefined {
  const [, chain = '', address = ''] = sourcePattern.exec(source) ?? []
  const chainId = Number(chain)
  return isAddress(address) && Number.isSafeInteger(chainId) ? { chainId, address } : undefined
}
