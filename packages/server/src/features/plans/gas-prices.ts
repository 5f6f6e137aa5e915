import { setTimeout as delay } from 'node:timers/promises'
import type { Network, TokenInfo } from '@purser/protocol'
import type { Chains, Receipt } from '../../chain/port.ts'
import { type Clock, instantOf } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'

/** Gas costs in US dollars, from the latest price that each network's nodes reported and the operator's coin prices. */
export interface GasPrices {
  /** Cost of this much gas now, in billionths of a US dollar, rounded up. */
  costOf(network: Network, gas: bigint): bigint
  /** `costOf`, but 0 before any node has reported: no price is refused because of an assumption. */
  knownCostOf(network: Network, gas: bigint): bigint
  /**
   * Waits for a price of each network whose last one in this process is older than a challenge can be paid, or for the failure of
   * its nodes, for two seconds at most. Returns at once if the prices are recent.
   */
  recentReads(networks: readonly Network[]): Promise<void>
  /** Value of that fee, in billionths of a US dollar, rounded up. On Tempo a wei is 10^-18 US dollars. */
  worthOf(network: Network, wei: bigint): bigint
  /**
   * The lowest cost of this much gas that a price which was offered within the last `honoredMs` could have assumed. If this process
   * does not have readings for all of that time, it is a quarter of `lowestKnownCostOf`: gas may have been cheaper when the price was
   * offered. 0 before any node has reported.
   */
  leastCostOf(network: Network, gas: bigint): bigint
  /**
   * The lowest cost of this much gas that this process has read within the last `honoredMs`, otherwise its last one; undefined before
   * any node has reported. It limits the gas that a payment is granted.
   */
  lowestKnownCostOf(network: Network, gas: bigint): bigint | undefined
}

/** Whether an amount of a token, in its smallest unit, is worth less than this many billionths of a US dollar. */
export function isWorthLess(raw: bigint, { decimals }: Pick<TokenInfo, 'decimals'>, nanoUsd: bigint): boolean {
  return raw * 1_000_000_000n < nanoUsd * 10n ** BigInt(decimals)
}

/** Cost of a mined transaction for its sender, in wei: gas, and the L1 fee of an OP Stack network. */
export function costOfReceipt({
  gasUsed,
  effectiveGasPrice,
  l1Fee,
}: Pick<Receipt, 'gasUsed' | 'effectiveGasPrice' | 'l1Fee'>): bigint {
  return gasUsed * effectiveGasPrice + l1Fee
}

/** Nodes that answer later than this delay no challenge, which may name wallets on other networks. */
const readMsMax = 2_000
/** A price older than this is read again; the old one is used meanwhile. */
const freshMs = 10_000
/** Longer than a challenge can be paid. */
const honoredMs = 330_000
/** Longest gap between two readings for which `leastCostOf` counts the time between them as covered. */
const gapMsMax = 60_000
/** Readings older than this are dropped. */
const keptMs = honoredMs + gapMsMax
/** Divisor of the lowest reading where readings are missing: gas may have cost this much less when a price was offered. */
const uncoveredShare = 4n
/** Assumed size of a payment, in units of 256 bytes, and its gas: the L1 data fee is added to the gas price in this proportion. */
const l1Shares = 2n
const l1SharedGas = 100_000n
const oneCoin = 10n ** 18n

interface Reading {
  readonly at: number
  readonly weiPerGas: bigint
}

interface GasPriceDeps {
  readonly chains: Pick<Chains, 'on' | 'configured'>
  readonly clock: Clock
  readonly log: Log
}

export function createGasPrices(deps: GasPriceDeps, coinPrices: CoinPrices): GasPrices {
  const { readingsOf, recentReadOf } = createReadings(deps)
  const worthOf = (network: Network, wei: bigint): bigint =>
    dividedUp(wei * priceOfCoin(coinPrices, network) * 1_000n, oneCoin)
  const lastOf = (network: Network): bigint | undefined => readingsOf(network).at(-1)?.weiPerGas
  const summaryOf = createSummaries()
  return {
    worthOf,
    costOf: (network, gas) => worthOf(network, gas * (lastOf(network) ?? network.gasFees.assumed)),
    knownCostOf: (network, gas) => worthOf(network, gas * (lastOf(network) ?? 0n)),
    recentReads: async (networks) => {
      await Promise.all(networks.map(recentReadOf))
    },
    leastCostOf(network, gas) {
      const now = deps.clock.now().getTime()
      const summary = summaryOf(network, readingsOf(network), now)
      if (summary === undefined) return 0n
      const { lowest, firstAt, lastAt, hasGap } = summary
      const isCovered = firstAt <= now - honoredMs && !hasGap && now - lastAt <= gapMsMax
      return worthOf(network, isCovered ? gas * lowest : (gas * lowest) / uncoveredShare)
    },
    lowestKnownCostOf(network, gas) {
      const summary = summaryOf(network, readingsOf(network), deps.clock.now().getTime())
      return summary === undefined ? undefined : worthOf(network, gas * summary.lowest)
    },
  }
}

/** The readings of a network in the last minutes. */
interface Summary {
  /** The lowest price of those that are recent; the last one where none is. */
  readonly lowest: bigint
  readonly firstAt: number
  readonly lastAt: number
  /** Whether more than `gapMsMax` lie between two of them. */
  readonly hasGap: boolean
}

type SummaryOf = (network: Network, readings: readonly Reading[], now: number) => Summary | undefined

/** Returns the summaries of readings, each made once for all requests until the readings change or one of them is too old. */
function createSummaries(): SummaryOf {
  const known = new Map<string, { readings: readonly Reading[]; fromMs: number; untilMs: number; summary: Summary }>()
  return ({ name }, readings, now) => {
    const entry = known.get(name)
    if (entry?.readings === readings && now >= entry.fromMs && now <= entry.untilMs) return entry.summary
    const [first, last] = [readings[0], readings.at(-1)]
    if (first === undefined || last === undefined) return undefined
    const recent = readings.filter(({ at }) => at >= now - keptMs)
    const summary = {
      lowest: recent.reduce((least, { weiPerGas }) => (weiPerGas < least ? weiPerGas : least), last.weiPerGas),
      firstAt: first.at,
      lastAt: last.at,
      hasGap: readings.some(({ at }, index) => at - (readings[index - 1] ?? first).at > gapMsMax),
    }
    const untilMs = (recent[0]?.at ?? Number.POSITIVE_INFINITY) + keptMs
    known.set(name, { readings, fromMs: now, untilMs, summary })
    return summary
  }
}

interface Readings {
  /**
   * The readings of a network in the last minutes, oldest first. If the last one is old, the call starts another in the
   * background.
   */
  readingsOf(network: Network): readonly Reading[]
  /**
   * The end of the read that is under way, or of the time for it, if the last reading of a network is old; undefined if it is recent,
   * and for a network that is not served.
   */
  recentReadOf(network: Network): Promise<void> | undefined
}

function createReadings({ chains, clock, log }: GasPriceDeps): Readings {
  const known = new Map<string, { readings: readonly Reading[]; lastTry: number; reading?: Promise<void> }>()
  const read = async (network: Network): Promise<bigint> => {
    const { baseFee, priorityFee, l1Fee, dataGas } = await chains.on(network).offeredFees()
    const dataFee = dataGas === 0n ? l1Fee : dataGas * baseFee
    return baseFee + priorityFee + (dataFee * l1Shares) / l1SharedGas
  }
  const current = (network: Network) => {
    const now = clock.now().getTime()
    const entry = known.get(network.name) ?? { readings: [], lastTry: Number.NEGATIVE_INFINITY }
    known.set(network.name, entry)
    if (now - entry.lastTry >= freshMs && chains.configured.some(({ name }) => name === network.name)) {
      entry.lastTry = now
      const reading = read(network).then(
        (weiPerGas) => {
          const kept = entry.readings.filter(({ at }) => now - at <= keptMs)
          entry.readings = [...kept, { at: now, weiPerGas }]
        },
        (error: unknown) =>
          log.warn({ err: error, network: network.name }, 'the gas price could not be read; the last one is used'),
      )
      entry.reading = Promise.race([reading, delay(readMsMax, undefined, { ref: false })])
    }
    return entry
  }
  const recentReadOf = (network: Network): Promise<void> | undefined => {
    const { readings, reading } = current(network)
    const last = readings.at(-1)
    return last === undefined || clock.now().getTime() - last.at > honoredMs ? reading : undefined
  }
  return { readingsOf: (network) => current(network).readings, recentReadOf }
}

function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}

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
