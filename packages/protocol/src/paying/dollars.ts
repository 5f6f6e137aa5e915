import { formatAmount, parseAmount } from '../money.ts'
import type { TokenInfo } from '../network-facts.ts'

/** Dollars are counted in units of 10^-18, so that every amount of a supported token is a whole number of units. */
export const usdDecimals = 18

/**
 * Parses decimal dollars such as `0.05` into units of 10^-18. `undefined` if the text is not a decimal or is finer
 * than that.
 *
 * @example
 * parseUsd('0.01') // 10000000000000000n
 * parseUsd('$1') // undefined
 */
export function parseUsd(text: string): bigint | undefined {
  const usd = parseAmount(text, usdDecimals)
  return typeof usd === 'bigint' ? usd : undefined
}

/**
 * Formats units of 10^-18 dollars as exact decimal dollars.
 *
 * @example
 * formatUsd(10_000_000_000_000_000n) // '0.01'
 */
export function formatUsd(usd: bigint): string {
  return formatAmount(usd, usdDecimals)
}

/**
 * The dollar value of an amount of a dollar stablecoin, at one to one, in units of 10^-18. Exact, because tokens have
 * at most 18 decimals.
 *
 * @example
 * formatUsd(usdOf(10_000n, { decimals: 6 })) // '0.01'
 */
export function usdOf(rawAmount: bigint, token: Pick<TokenInfo, 'decimals'>): bigint {
  return rawAmount * 10n ** BigInt(usdDecimals - token.decimals)
}
