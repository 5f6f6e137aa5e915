import type { Address } from '@purser/protocol'
import type { ReadHolding } from './balances/read.ts'

/** A public BIP-32 node, from which children are derived without any secret. */
export interface PublicNode {
  /** The compressed point, 33 bytes. */
  readonly publicKey: Uint8Array
  /** 32 bytes. */
  readonly chainCode: Uint8Array
}

/**
 * The account of a node's child, EIP-55 checksummed. Undefined for an index without a valid BIP-32 key (one in 2^127): the next one is used
 * instead.
 */
export type DeriveAddress = (node: PublicNode, index: number) => Address | undefined

declare module '../../platform/ctx.ts' {
  interface Ports {
    readonly deriveAddress: DeriveAddress
    readonly readHolding: ReadHolding
  }
}
