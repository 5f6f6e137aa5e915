import { formatAmount, parseAmount, type TokenInfo } from '@purser/protocol'

/** Dollars are counted in units of 10^-18, so that an amount of any token that is taken here is a whole number of them. */
export const usdDecimals = 18

/** Reads decimal dollars such as `0.05`; `undefined` for what is not a decimal or is finer than 10^-18. */
export function parseUsd(text: string): bigint | undefined {
  const usd = parseAmount(text, usdDecimals)
  return typeof usd === 'bigint' ? usd : undefined
}

/** Decimal dollars, exactly. */
export function formatUsd(usd: bigint): string {
  return formatAmount(usd, usdDecimals)
}

/** What so much of a dollar stablecoin is in dollars, at one to one. Exact, as a token here has at most 18 decimals. */
export function usdOf(rawAmount: bigint, token: Pick<TokenInfo, 'decimals'>): bigint {
  return rawAmount * 10n ** BigInt(usdDecimals - token.decimals)
}
