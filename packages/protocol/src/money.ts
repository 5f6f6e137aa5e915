import { uint256Max } from './bytes.ts'

/** The reason why a text is not an amount of a token. */
export type AmountFault = 'not-a-decimal' | 'negative' | 'too-many-digits' | 'too-large'

const textLengthMax = 160
const rawLengthMax = 78
const decimalPattern = /^(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/

/**
 * Parses a decimal amount into the token's smallest unit, exactly. Nothing is rounded: more digits after the point than
 * the token has decimals are `too-many-digits`, even if they are zeros. No exponent, sign, leading zero, separator or
 * white space; at most 2^256 - 1. Zero is valid; the caller decides whether it may be paid.
 *
 * @example
 * parseAmount('0.01', 6) // 10000n
 * parseAmount('0.0000001', 6) // 'too-many-digits'
 */
export function parseAmount(text: string, decimals: number): bigint | AmountFault {
  if (text.length > textLengthMax) return 'not-a-decimal'
  if (text.startsWith('-')) return decimalPattern.test(text.slice(1)) ? 'negative' : 'not-a-decimal'
  if (!decimalPattern.test(text)) return 'not-a-decimal'
  const point = text.indexOf('.')
  const whole = point === -1 ? text : text.slice(0, point)
  const fraction = point === -1 ? '' : text.slice(point + 1)
  if (fraction.length > decimals) return 'too-many-digits'
  const raw = BigInt(whole + fraction.padEnd(decimals, '0'))
  return raw > uint256Max ? 'too-large' : raw
}

/**
 * Formats an amount in the smallest unit as its only decimal text, without zeros at the end and without a point that no
 * digit follows (`0.01`, `1`). A negative amount keeps its sign. `parseAmount` returns the same number for the text of
 * an amount that is not negative.
 *
 * @example
 * formatAmount(10_000n, 6) // '0.01'
 * formatAmount(1_000_000n, 6) // '1'
 */
export function formatAmount(raw: bigint, decimals: number): string {
  if (raw < 0n) return `-${formatAmount(-raw, decimals)}`
  const digits = raw.toString().padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction}`
}

/**
 * Parses an amount that is already in the smallest unit: decimal digits, no leading zero, at most 2^256 - 1.
 *
 * @example
 * parseRaw('10000') // 10000n
 * parseRaw('0x10') // 'not-a-decimal'
 */
export function parseRaw(text: string): bigint | AmountFault {
  if (text.length > textLengthMax) return 'not-a-decimal'
  if (/^-[0-9]+$/.test(text)) return 'negative'
  if (!/^(?:0|[1-9][0-9]*)$/.test(text)) return 'not-a-decimal'
  if (text.length > rawLengthMax) return 'too-large'
  const raw = BigInt(text)
  return raw > uint256Max ? 'too-large' : raw
}

const attoDecimals = 18

/**
 * Converts an amount in the smallest unit of its token to 1e-18 of the token, so that amounts of a token with other decimals on another chain
 * can be added. Throws a `RangeError` if the token has more than 18 decimals.
 *
 * @example
 * attoOf(10_000n, 6) // 10000000000000000n
 */
export function attoOf(raw: bigint, decimals: number): bigint {
  if (decimals > attoDecimals) throw new RangeError('tokens with more than 18 decimals are not supported')
  return raw * 10n ** BigInt(attoDecimals - decimals)
}

/**
 * Converts a price in US dollars to a dollar stablecoin, at one to one, in the token's smallest unit. Rounding rule: none. A
 * price finer than the token can express is refused (`too-many-digits`), because either rounding would charge another price
 * than the one that was shown.
 *
 * @example
 * priceInStablecoin('0.01', { decimals: 6 }) // 10000n
 */
export function priceInStablecoin(priceUsd: string, token: { readonly decimals: number }): bigint | AmountFault {
  return parseAmount(priceUsd, token.decimals)
}
