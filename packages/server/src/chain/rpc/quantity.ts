import type { Hex } from '@purser/protocol'

/** A JSON-RPC quantity: `0x` and hexadecimal digits. */
export function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}
