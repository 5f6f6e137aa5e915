import { l1FeeOf, type Network, tokenByAddress } from '@purser/protocol'
import type { Prices } from '../../../chain/fees/costs.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { Coin } from '../../funds/index.ts'
import { hasGasLeft, isWorthLess, reserveForEach } from '../../plans/index.ts'
import { gasOfGasless, isGasless, type SourceWallet } from '../../wallets/index.ts'
import type { Ctx } from '../ports.ts'
import type { TransferId } from '../store.ts'
import { insertGasless, type NewGasless } from './store.ts'

/**
 * Milliseconds for which a signature is valid. A transfer that the token refuses is reported as failed only after that, and its money stays reserved
 * until then.
 */
const validMs = 1_800_000
const nonceBytes = 32
/** Number of transactions that the settler must be able to pay for before it gets more work. */
const settlerTransactions = 10n
/** Call data of one transfer, and of the batch around it. */
const bytesOfGasless = 512

interface Payout {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
  readonly fees: Prices
}

/**
 * Whether the settler sends a child's transfer at the operator's cost: the token supports signed authorizations (EIP-3009) with a known
 * domain, the amount is worth the gas, the day's gas budget suffices, and the settler has gas. Otherwise the master sends the child its gas.
 */
export async function canBeGasless(
  ctx: Ctx,
  { source, network, coin, fees, rawAmount }: Payout & { readonly rawAmount: bigint },
): Promise<boolean> {
  if (source.address === source.masterAddress || coin.address === undefined) return false
  const token = tokenByAddress(network, coin.address)
  if (token === undefined || !isGasless(network, token)) return false
  if (ctx.chains.tokenDomainState(network, token) === 'wrong') return false
  await ctx.gasPrices.recentReads([network])
  const nanoUsd = ctx.gasPrices.lowestKnownCostOf(network, gasOfGasless)
  if (nanoUsd === undefined || isWorthLess(rawAmount, token, nanoUsd)) return false
  if (!(await hasGasLeft(ctx, network, gasOfGasless))) return false
  const wei = await ctx.chains.on(network).coin(ctx.settlerAddress)
  const cost = gasOfGasless * fees.maxFee + l1FeeOf(fees.l1Fee, bytesOfGasless)
  return wei >= cost * settlerTransactions
}

/** A gasless transfer, with the request that it belongs to. */
interface Wanted {
  readonly ctx: Pick<Ctx, 'tenant' | 'clock' | 'random' | 'gasPrices' | 'settleNanoUsdPerDayMax'>
  readonly transferId: TransferId
  readonly plan: {
    readonly source: Pick<SourceWallet, 'address'>
    readonly network: Network
    readonly coin: Pick<Coin, 'address'>
  }
}

/**
 * Stores messages for wallets of one tenant to sign, and charges their gas to the operator's budgets, in order of arrival until a budget is
 * used up. Returns the nonces of the stored ones, and the requests that found no budget.
 */
export async function storeGasless<T extends Wanted>(
  tx: Tx,
  wanted: readonly T[],
): Promise<{ readonly nonces: ReadonlyMap<TransferId, Uint8Array>; readonly over: readonly T[] }> {
  const groups = [...Map.groupBy(wanted, ({ plan }) => plan.network.name).values()].flatMap((some) => {
    const [first] = some
    if (first === undefined) return []
    const { ctx, plan } = first
    const nanoUsd = ctx.gasPrices.costOf(plan.network, gasOfGasless)
    return [{ ctx, network: plan.network, nanoUsd, wanted: some.length, some }]
  })
  const [first] = groups
  const fitting = first === undefined ? [] : await reserveForEach(first.ctx, tx, groups)
  const made = groups.flatMap(({ some, nanoUsd }, index) =>
    some.slice(0, fitting[index] ?? 0).map((one) => gaslessOf(one, nanoUsd)),
  )
  await insertGasless(tx, made)
  return {
    nonces: new Map(made.map(({ transferId, nonce }) => [transferId, nonce])),
    over: groups.flatMap(({ some }, index) => some.slice(fitting[index] ?? 0)),
  }
}

function gaslessOf(
  { ctx, transferId, plan: { source, network, coin } }: Wanted,
  gasReservedNanoUsd: bigint,
): NewGasless {
  if (coin.address === undefined) throw new Error('the native coin cannot be moved by a signature')
  const createdAt = ctx.clock.now()
  return {
    transferId,
    network: network.name,
    asset: coin.address,
    fromAddress: source.address,
    // Random: nobody can guess a nonce and use it first.
    nonce: ctx.random.bytes(nonceBytes),
    validBefore: instantOf(createdAt.getTime() + validMs),
    createdAt,
    gasReservedNanoUsd,
  }
}
