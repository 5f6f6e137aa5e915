import type { Network } from '@purser/protocol'
import type { Chains } from '../../chain/port.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import { type CoinPrices, priceOfCoin } from './coin-prices.ts'

/** What gas costs in US dollars, by what each network's nodes last said and the operator's prices of coins. Answers at once and never waits. */
export interface GasPrices {
  /** What this much gas costs now, in billionths of a US dollar, rounded up. */
  costOf(network: Network, gas: bigint): bigint
  /** `costOf`, but 0 before any node has said, for refusing a price: a guess refuses nobody. */
  knownCostOf(network: Network, gas: bigint): bigint
  /** What that fee is worth, in billionths of a US dollar, rounded up. On Tempo a wei is 10^-18 US dollars. */
  worthOf(network: Network, wei: bigint): bigint
  /**
   * The least that this much gas cost in the last minutes that `honoredMs` spans, 0 while this process does not know all of them: for
   * prices that were offered then.
   */
  leastCostOf(network: Network, gas: bigint): bigint
}

/** A price this old is read again; the old one serves meanwhile. */
const freshMs = 10_000
/** Longer than a challenge may be paid. */
const honoredMs = 330_000
/** Between two readings there may be this long for `leastCostOf` to know the time between them. */
const gapMsMax = 60_000
/** Before any node has said: dearer than these networks usually are, so that no budget is outrun. */
const unknownWeiPerGas = { ETH: 2_000_000_000n, POL: 100_000_000_000n } as const
const unknownAttodollarsPerGas = 20_000_000_000n
/** A payment is about this many shares of 256 bytes and this much gas: its fee for data is spread over its gas. */
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
  const readingsOf = createReadings(deps)
  const worthOf = (network: Network, wei: bigint): bigint =>
    dividedUp(wei * priceOfCoin(coinPrices, network) * 1_000n, oneCoin)
  const lastOf = (network: Network): bigint | undefined => readingsOf(network).at(-1)?.weiPerGas
  return {
    worthOf,
    costOf: (network, gas) => worthOf(network, gas * (lastOf(network) ?? unknownPrice(network))),
    knownCostOf: (network, gas) => worthOf(network, gas * (lastOf(network) ?? 0n)),
    leastCostOf(network, gas) {
      const since = deps.clock.now().getTime() - honoredMs
      const readings = readingsOf(network)
      if (!spans(readings, since, deps.clock.now().getTime())) return 0n
      const prices = readings.map(({ weiPerGas }) => weiPerGas)
      return worthOf(network, gas * prices.reduce((least, price) => (price < least ? price : least)))
    },
  }
}

/** The readings of a network in the last minutes, oldest first. Each look starts another in the background where the last is old. */
function createReadings({ chains, clock, log }: GasPriceDeps): (network: Network) => readonly Reading[] {
  const known = new Map<string, { readings: readonly Reading[]; lastTry: number }>()
  const read = async (network: Network): Promise<bigint> => {
    const chain = chains.on(network)
    const [head, fees] = await Promise.all([chain.head(), chain.offeredFees()])
    return head.baseFee + fees.priorityFee + (fees.l1Fee * l1Shares) / l1SharedGas
  }
  return (network) => {
    const now = clock.now().getTime()
    const entry = known.get(network.name) ?? { readings: [], lastTry: Number.NEGATIVE_INFINITY }
    known.set(network.name, entry)
    const isServed = chains.configured.some(({ name }) => name === network.name)
    if (isServed && now - entry.lastTry >= freshMs) {
      entry.lastTry = now
      read(network).then(
        (weiPerGas) => {
          const kept = entry.readings.filter(({ at }) => now - at <= honoredMs + gapMsMax)
          entry.readings = [...kept, { at: now, weiPerGas }]
        },
        (error: unknown) =>
          log.warn({ err: error, network: network.name }, 'the price of gas is not known; the last one serves'),
      )
    }
    return entry.readings
  }
}

/** Whether the readings know all of the time from `since` until now. */
function spans(readings: readonly Reading[], since: number, now: number): boolean {
  const instants = [...readings.map(({ at }) => at), now]
  return (instants[0] ?? now) <= since && instants.every((at, index) => at - (instants[index - 1] ?? at) <= gapMsMax)
}

function unknownPrice({ nativeCoin }: Network): bigint {
  if (nativeCoin === null) return unknownAttodollarsPerGas
  return nativeCoin.symbol === 'POL' ? unknownWeiPerGas.POL : unknownWeiPerGas.ETH
}

function dividedUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor
}
