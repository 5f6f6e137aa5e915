import { type Address, type Hex, selectorOf } from '@purser/protocol'

const allowance = selectorOf('allowance(address,address)')
/** Selector of the call that `encodeApprove` encodes. */
export const approveSelector = selectorOf('approve(address,uint256)')

/** Encodes the query of the amount that a contract may take of an account's tokens. */
export function encodeAllowance({ owner, spender }: { readonly owner: Address; readonly spender: Address }): Hex {
  return encodeWords(allowance, [owner, spender])
}

/** Encodes the call that sets the allowance of a contract to exactly this amount. */
export function encodeApprove(spender: Address, rawAmount: bigint): Hex {
  return encodeWords(approveSelector, [spender, rawAmount])
}

/** Encodes the call of a function whose arguments have one word each: a number, an account or 32 bytes. */
export function encodeWords(selector: Hex, args: readonly (bigint | Hex)[]): Hex {
  return `${selector}${args.map(wordOf).join('')}`
}

/** The 64 hex digits of a number, an account or 32 bytes. */
export function wordOf(value: bigint | Hex): string {
  return (typeof value === 'bigint' ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, '0')
}
