import { type Address, parseAddress } from './address.ts'

/** A chain of the EVM family as CAIP-2 names it. */
export type EvmCaip2 = `eip155:${number}`

const caip2Pattern = /^([-a-z0-9]{3,8}):([-_a-zA-Z0-9]{1,32})$/
const chainIdPattern = /^[1-9][0-9]{0,15}$/

/**
 * The two parts of a chain id, such as `eip155:8453`; `undefined` for what CAIP-2 does not allow.
 *
 * @example
 * parseCaip2('eip155:8453') // { namespace: 'eip155', reference: '8453' }
 */
export function parseCaip2(text: string): { namespace: string; reference: string } | undefined {
  const [, namespace, reference] = caip2Pattern.exec(text) ?? []
  return namespace === undefined || reference === undefined ? undefined : { namespace, reference }
}

/**
 * The chain id of an EVM chain, or `undefined`; a leading zero, which would name one chain twice, is refused.
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
 * The CAIP-2 name of an EVM chain.
 *
 * @example
 * caip2OfChainId(8453) // 'eip155:8453'
 */
export function caip2OfChainId(chainId: number): EvmCaip2 {
  return `eip155:${chainId}`
}

/**
 * An account on an EVM chain as CAIP-10 writes it, such as `eip155:8453:0x…`.
 *
 * @example
 * formatCaip10(8453, '0x036CbD53842c5426634e7929541eC2318f3dCF7e') // 'eip155:8453:0x036CbD53842c5426634e7929541eC2318f3dCF7e'
 */
export function formatCaip10(chainId: number, address: Address): string {
  return `${caip2OfChainId(chainId)}:${address}`
}

/**
 * The chain and the checksummed account of a CAIP-10 text of the EVM family; a wrong checksum is refused.
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
