import { type Address, parseAddress } from './address.ts'

/** The CAIP-2 id of an EVM chain. */
export type EvmCaip2 = `eip155:${number}`

const caip2Pattern = /^([-a-z0-9]{3,8}):([-_a-zA-Z0-9]{1,32})$/
const chainIdPattern = /^[1-9][0-9]{0,15}$/

/**
 * Splits a CAIP-2 id, such as `eip155:8453`. Returns `undefined` if it is malformed.
 *
 * @example
 * parseCaip2('eip155:8453') // { namespace: 'eip155', reference: '8453' }
 */
export function parseCaip2(text: string): { namespace: string; reference: string } | undefined {
  const [, namespace, reference] = caip2Pattern.exec(text) ?? []
  return namespace === undefined || reference === undefined ? undefined : { namespace, reference }
}

/**
 * Returns the chain id in the CAIP-2 id of an EVM chain. Returns `undefined` for other texts and for leading zeros, so
 * that a chain has only one id.
 *
 * @example
 * chainIdOfCaip2('eip155:8453') // 8453
 * chainIdOfCaip2('solana:mainnet') // undefined
 */
export function chainIdOfCaip2(text: string): number | undefined {
  const parts = parseCaip2(text)
  if (parts?.namespace !== 'eip155' || !chainIdPattern.test(parts.reference)) return undefined
  const chainId = Number(parts.reference)
  return Number.isSafeInteger(chainId) ? chainId : undefined
}

/**
 * Returns the CAIP-2 id of an EVM chain.
 *
 * @example
 * caip2OfChainId(8453) // 'eip155:8453'
 */
export function caip2OfChainId(chainId: number): EvmCaip2 {
  return `eip155:${chainId}`
}

/**
 * Formats an account on an EVM chain as CAIP-10, such as `eip155:8453:0x…`.
 *
 * @example
 * formatCaip10(8453, '0x036CbD53842c5426634e7929541eC2318f3dCF7e') // 'eip155:8453:0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 */
export function formatCaip10(chainId: number, address: Address): string {
  return `${caip2OfChainId(chainId)}:${address}`
}

/**
 * Parses a CAIP-10 account of an EVM chain. The address is returned with EIP-55 checksum. Returns `undefined` for any
 * other text, including an address with a wrong checksum.
 *
 * @example
 * parseCaip10('eip155:8453:0x036CbD53842c5426634e7929541eC2318f3dCF7e') // { chainId: 8453, address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' }
 */
export function parseCaip10(text: string): { chainId: number; address: Address } | undefined {
  const split = text.lastIndexOf(':')
  const chainId = chainIdOfCaip2(text.slice(0, Math.max(split, 0)))
  const address = parseAddress(text.slice(split + 1))
  return chainId === undefined || address === undefined ? undefined : { chainId, address }
}
