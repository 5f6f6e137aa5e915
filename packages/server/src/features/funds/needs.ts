import { type Address, formatAmount, type Hex, l1FeeOf, type Network } from '@purser/protocol'
import type { OfferedFees } from '../../chain/port.ts'
import type { Clock } from '../../platform/clock.ts'
import { defineErrors } from '../../platform/errors.ts'

const fail = defineErrors({
  'insufficient-balance': {
    status: 422,
    title: 'Insufficient Balance',
    detail:
      'The wallet has too little for the transfer and its gas; required, available and held (until the sender is screened) give the amounts of each token.',
    causes: [
      'The wallet has less of the token than the amount, or less of the chain’s coin than the gas: a fresh managed wallet has neither.',
      'A part is reserved by transfers that are under way, or arrived in a block that is not final.',
      'A part is on hold (`held`) until its sender is screened.',
    ],
    fix: 'Read `balances`: fund the token that is short (in test with `POST /test/deposits`, for gas with `"token": "ETH"`), or send less. For money on hold or not final, repeat later.',
  },
})
/** The error of operations that pay from a managed wallet. */
export const fundErrors = fail.table

/** A token or a chain's native coin, with the decimals of its amounts. */
export interface Coin {
  readonly symbol: string
  readonly decimals: number
  /** Undefined for the chain's native coin. */
  readonly address: Address | undefined
}

/** The coin in which the network's gas is paid; undefined if a token pays it (Tempo). */
export function nativeCoinOf({ nativeCoin }: Network): Coin | undefined {
  return nativeCoin === null ? undefined : { ...nativeCoin, address: undefined }
}

/** The amount of a coin that a wallet needs, and its available amount (not reserved); in the smallest unit. */
interface Need {
  readonly coin: Coin
  readonly required: bigint
  readonly available: bigint
  /** Additional amount that waits for the screening of its sender. */
  readonly held?: bigint
}

/** The need of an amount, and what the wallet has of its coin. */
export function needOf(
  coin: Coin,
  required: bigint,
  own: { readonly available: bigint; readonly unscreened: bigint } | undefined,
): Need {
  return { coin, required, available: own?.available ?? 0n, held: own?.unscreened ?? 0n }
}

/** Throws `insufficient-balance` unless the needs are met; several needs of one coin are added. */
export function refuseShort(needs: readonly Need[]): void {
  const shortages = shortagesOf(needs)
  if (shortages.length > 0) throw insufficientBalance(shortages)
}

const contendedMsMax = 10_000

/** Cause of a temporary refusal: another request reserved the money after the snapshot was read. */
const contended = new Error('another request reserved the money since it was read')

/** The refusal if other requests reserved the money after the plan's snapshot; `retryOnContention` then plans again. */
export function contendedBy({ coin, rawAmount, feeCoin, rawFee }: Cost): Error {
  const needs = [
    { coin, required: rawAmount, available: 0n },
    { coin: feeCoin, required: rawFee, available: 0n },
  ]
  return insufficientBalance(shortagesOf(needs), contended)
}

/** The amount that a payment moves, and at most the cost of its gas. */
interface Cost {
  readonly coin: Coin
  readonly rawAmount: bigint
  readonly feeCoin: Coin
  readonly rawFee: bigint
}

/**
 * Retries work with a new snapshot while other requests reserve the money first, for at most ten seconds. The final refusal is about the
 * real balance. Each retry follows a reservation of another request, so one of several always succeeds.
 */
export async function retryOnContention<T>({ clock }: { readonly clock: Clock }, work: () => Promise<T>): Promise<T> {
  const until = clock.now().getTime() + contendedMsMax
  for (;;) {
    try {
      return await work()
    } catch (error) {
      const isContended = error instanceof Error && error.cause === contended
      if (!isContended || clock.now().getTime() >= until) throw error
    }
  }
}

/** A shortage as a problem record shows it: amounts in whole tokens. */
interface Shortage {
  readonly token: string
  readonly required: string
  readonly available: string
  /** Omitted if nothing waits for the screening of its sender. */
  readonly held?: string
}

/** Shortages of the needs that are not met; several needs of one coin are added. */
export function shortagesOf(needs: readonly Need[]): Shortage[] {
  const bySymbol = new Map<string, Need>()
  for (const need of needs) {
    const before = bySymbol.get(need.coin.symbol)
    bySymbol.set(need.coin.symbol, { ...need, required: need.required + (before?.required ?? 0n) })
  }
  return [...bySymbol.values()]
    .filter(({ required, available }) => required > available)
    .map(({ coin, required, available, held = 0n }) => ({
      token: coin.symbol,
      required: formatAmount(required, coin.decimals),
      available: formatAmount(available < 0n ? 0n : available, coin.decimals),
      ...(held > 0n ? { held: formatAmount(held, coin.decimals) } : {}),
    }))
}

/** The detail states the amounts too, since logs and clients often show nothing else. */
function insufficientBalance(balances: readonly Shortage[], cause?: unknown): Error {
  const amounts = balances.map(({ token, required, available, held }) => {
    const waiting = held === undefined ? '' : ` and ${held} on hold until its sender is screened`
    return `${required} ${token} required, ${available} available${waiting}`
  })
  const detail = `The wallet has too little for the transfer and its gas: ${amounts.join('; ')}.`
  return fail('insufficient-balance', { detail, balances }, cause)
}

/** Gas of a plain payment of the coin to an account without code. */
export const plainGas = 21_000n

/** Gas price, and the L1 fee of the network, from which the cost of a transaction is computed. */
export type Prices = Pick<OfferedFees, 'maxFee' | 'l1Fee'>

/** A call whose gas is to be paid. */
interface PricedCall {
  readonly gasLimit: bigint
  readonly data: Hex
}

/** Most wei that a transaction costs in addition to its value: the balance that a node requires. */
export function feeOfCall({ gasLimit, data }: PricedCall, prices: Prices): bigint {
  return feeOfGas({ gasLimit, dataBytes: bytesOf(data) }, prices)
}

export function bytesOf(data: Hex): number {
  return data.length / 2 - 1
}

/** As `feeOfCall`, from the number of bytes of call data. */
export function feeOfGas(
  { gasLimit, dataBytes }: { readonly gasLimit: bigint; readonly dataBytes: number },
  { maxFee, l1Fee }: Prices,
): bigint {
  return gasLimit * maxFee + l1FeeOf(l1Fee, dataBytes)
}

/** Most wei that a plain coin payment costs in addition to its value. */
export function plainFee(prices: Prices): bigint {
  return feeOfCall({ gasLimit: plainGas, data: '0x' }, prices)
}

const attodollarDecimals = 18

/** Most that the gas costs, in the smallest unit of a fee token with these decimals (Tempo: a gas price is in 1e-18 USD); rounded up. */
export function feeInToken(gasLimit: bigint, maxFee: bigint, decimals: number): bigint {
  const unit = 10n ** BigInt(attodollarDecimals - decimals)
  return (gasLimit * maxFee + unit - 1n) / unit
}

/**
 * Top-up that a master sends a child for its call: twice the current maximum cost, since fees may rise before the coin arrives, less the
 * child's available coin; zero if it has enough. What remains pays for its next call.
 */
export function topUpOf({ cost, available }: { readonly cost: bigint; readonly available: bigint }): bigint {
  if (available >= cost) return 0n
  const short = cost * 2n - available
  return short > 0n ? short : 0n
}

/** The gas of calls at most, and who pays it. */
interface GasPayment {
  readonly feeCoin: Coin
  /** In the smallest unit of `feeCoin`; with the gas of the top-up. */
  readonly rawFee: bigint
  /** Coin that the master sends first, in wei; zero if the wallet pays by itself. */
  readonly topUp: bigint
}

/** The amount that a payment takes from its wallet, and the coin that is available for its gas, in wei. */
interface GasTerms {
  readonly network: Network
  readonly prices: Prices
  readonly amount: Need
  readonly native: bigint
  /** Of the master that pays for a child; undefined for a master, which pays by itself. */
  readonly masterNative: bigint | undefined
}

/** Decides who pays for the gas of a wallet's calls. Throws `insufficient-balance` if neither the wallet nor its master can. */
export function payGas(calls: readonly PricedCall[], terms: GasTerms): GasPayment {
  const { network, prices, amount, native, masterNative } = terms
  const { coin } = amount
  const feeCoin = nativeCoinOf(network)
  if (feeCoin === undefined) {
    const gas = calls.reduce((sum, { gasLimit }) => sum + gasLimit, 0n)
    const rawFee = feeInToken(gas, prices.maxFee, coin.decimals)
    refuseShort([amount, { ...amount, required: rawFee }])
    return { feeCoin: coin, rawFee, topUp: 0n }
  }
  const gas = feeOfCalls(calls, prices)
  const spare = coin.address === undefined ? native - amount.required : native
  const topUp = masterNative === undefined ? 0n : topUpOf({ cost: gas, available: spare > 0n ? spare : 0n })
  if (masterNative === undefined || topUp === 0n) {
    refuseShort([amount, { coin: feeCoin, required: gas, available: native }])
    return { feeCoin, rawFee: gas, topUp }
  }
  const topUpGas = plainFee(prices)
  refuseShort([{ coin: feeCoin, required: topUp + topUpGas, available: masterNative }])
  return { feeCoin, rawFee: gas + topUpGas, topUp }
}

/** As `feeOfCall`, for several calls together. */
export function feeOfCalls(calls: readonly PricedCall[], prices: Prices): bigint {
  return calls.reduce((sum, call) => sum + feeOfCall(call, prices), 0n)
}
