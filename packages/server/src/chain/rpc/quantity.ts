import type { Hex } from '@purser/protocol'

/** A number as JSON-RPC has it. */
export function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}
