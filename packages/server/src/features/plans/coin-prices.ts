import type { Network } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'

/** Prices of the coins that pay for gas, in millionths of a US dollar each, and their date. */
export interface CoinPrices {
  /** `YYYY-MM-DD`. */
  readonly date: string
  /** By symbol; the symbol of a test network's coin starts with `t`. */
  readonly microUsd: Readonly<Record<string, bigint>>
}

/**
 * Default prices of a deployment. Test coins have no market price: theirs reflect the operator's effort to get them from a
 * faucet, so that budgets limit them too.
 */
export const shippedCoinPrices: CoinPrices = {
  date: '2026-11-22',
  microUsd: { ETH: 3_000_000_000n, POL: 250_000n, tETH: 1_000_000n, tPOL: 1_000n },
}

const dayMs = 86_400_000
const ageDaysMax = 30

/** Returns the price of a network's coin; the price of a US dollar where gas is paid in stablecoins. */
export function priceOfCoin({ microUsd }: CoinPrices, { nativeCoin, isTestnet, name }: Network): bigint {
  if (nativeCoin === null) return 1_000_000n
  const symbol = isTestnet ? `t${nativeCoin.symbol}` : nativeCoin.symbol
  const price = microUsd[symbol] ?? shippedCoinPrices.microUsd[symbol]
  if (price === undefined) throw new Error(`no price of the coin of ${name}`)
  return price
}

/** Whether the prices are too old to charge budgets by, so that an operator should update them. */
export function areStale({ date }: CoinPrices, now: Date): boolean {
  return now.getTime() - Date.parse(`${date}T00:00:00Z`) > ageDaysMax * dayMs
}

/**
 * Parses `<date>,<symbol>=<US dollars>,…`, such as `2026-11-22,ETH=3000,POL=0.25`. Omitted coins keep the default price. Returns
 * the fault if the text is invalid.
 */
export function parseCoinPrices(text: string): CoinPrices | { readonly fault: string } {
  const [date = '', ...pairs] = text.split(',').map((part) => part.trim())
  if (!isDay(date)) return { fault: 'does not begin with a date' }
  const microUsd: Record<string, bigint> = { ...shippedCoinPrices.microUsd }
  for (const pair of pairs) {
    const [, symbol, whole = '', fraction = ''] = /^(\w+)=(\d{1,9})(?:\.(\d{1,6}))?$/.exec(pair) ?? []
    if (symbol === undefined || !Object.hasOwn(shippedCoinPrices.microUsd, symbol)) return { fault: `has ${pair}` }
    microUsd[symbol] = BigInt(whole + fraction.padEnd(6, '0'))
  }
  return pairs.length === 0 ? { fault: 'names no coin' } : { date, microUsd }
}

function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && instantOf(ms).toISOString().startsWith(text)
}
