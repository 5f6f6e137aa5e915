import type { Address } from '@purser/protocol'
import type { ReadHolding } from './balances/read.ts'

/** A public node of BIP-32: what its children are derived from without any secret. */
export interface PublicNode {
  /** The compressed point, 33 bytes. */
  readonly publicKey: Uint8Array
  /** 32 bytes. */
  readonly chainCode: Uint8Array
}

/**
 * The account of a node's child, EIP-55 checksummed. Undefined for the one index in 2^127 that BIP-32 says has no key: the next
 * one is taken instead.
 */
export type DeriveAddress = (node: PublicNode, index: number) => Address | undefined

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly deriveAddress: DeriveAddress
    readonly readHolding: ReadHolding
  }
}
