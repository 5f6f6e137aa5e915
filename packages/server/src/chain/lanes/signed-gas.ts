import { type Hex, hexToBytes } from '@purser/protocol'

/** The members of an EIP-1559 transaction before its gas limit: chain ID, nonce, priority fee and maximum fee. */
const membersBefore = 4

/** The gas limit in the bytes of a signed EIP-1559 transaction. Source: EIP-1559; yellow paper, appendix B. */
export function signedGasLimit(raw: Hex): bigint {
  const bytes = hexToBytes(raw)
  const listHead = bytes[1] ?? 0
  let at = 2 + Math.max(0, listHead - 0xf7)
  for (let passed = 0; passed < membersBefore; passed++) at = endOf(bytes, at)
  const head = bytes[at] ?? 0
  const digits = bytes.subarray(head < 0x80 ? at : at + 1, endOf(bytes, at))
  return digits.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
}

/** Where the integer that begins here ends. One byte below 0x80 is its own encoding. */
function endOf(bytes: Uint8Array, at: number): number {
  return at + 1 + Math.max(0, (bytes[at] ?? 0) - 0x80)
}
