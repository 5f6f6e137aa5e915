import { l1FeeOf, type Network, tokenByAddress } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { inLockOrder } from '../../../platform/db/lock-order.ts'
import { hasGasLeft, reserveForEach } from '../../plans/index.ts'
import { gasOfAuthorisation, type SourceWallet, takesAuthorisations } from '../../wallets/index.ts'
import type { TransferId } from '../store.ts'
import type { Coin, Prices } from '../weigh.ts'
import { insertAuthorisation } from './store.ts'

/** How long an authorisation is good. One that the token refuses is told as failed only after that, and its money is held until then. */
const validMs = 1_800_000
const nonceBytes = 32
/** Transactions that the settler must be able to pay for before more is left to it. */
const settlerTransactions = 10n
/** Call data of one authorisation, and of the batch around it. */
const bytesOfAuthorisation = 512

interface Asked {
  readonly source: SourceWallet
  readonly network: Network
  readonly coin: Coin
  readonly fees: Prices
}

/**
 * Whether the settler brings a child's transfer to the chain, at the operator's cost: the token takes signed authorisations (EIP-3009) and
 * signs under the domain that is known of it, the day's gas budget has room, and the settler has gas. Otherwise the child is lent gas.
 */
export async function isAuthorisable(ctx: Ctx, { source, network, coin, fees }: Asked): Promise<boolean> {
  if (source.address === source.masterAddress || coin.address === undefined) return false
  const token = tokenByAddress(network, coin.address)
  if (token === undefined || !takesAuthorisations(network, token)) return false
  if (ctx.chains.tokenDomainState(network, token) === 'wrong') return false
  if (!(await hasGasLeft(ctx, network, gasOfAuthorisation))) return false
  const [settler] = await ctx.chains.on(network).holdings([{ account: ctx.settlerAddress, tokens: [] }])
  const cost = gasOfAuthorisation * fees.maxFee + l1FeeOf(fees.l1Fee, bytesOfAuthorisation)
  return (settler?.native ?? 0n) >= cost * settlerTransactions
}

/** A transfer that is to be authorised, by the request that wants it. */
interface Wanted {
  readonly ctx: Ctx
  readonly transferId: TransferId
  readonly plan: Omit<Asked, 'fees'>
}

/**
 * Stores what children of one tenant are to sign, with the gas out of the operator's budgets, in the order in which they came as long as these
 * last. Answers those for whom nothing is left, of whom nothing is stored.
 */
export async function storeAuthorisations<T extends Wanted>(tx: Tx, wanted: readonly T[]): Promise<readonly T[]> {
  const over: T[] = []
  for (const [, some] of inLockOrder(Map.groupBy(wanted, ({ plan }) => plan.network.name))) {
    const [first] = some
    if (first === undefined) continue
    const nanoUsd = first.ctx.gasPrices.costOf(first.plan.network, gasOfAuthorisation)
    const each = { nanoUsd, wanted: some.length }
    const fitting = await reserveForEach(first.ctx, tx, first.plan.network, each)
    for (const one of some.slice(0, fitting)) await storeAuthorisation(tx, one)
    over.push(...some.slice(fitting))
  }
  return over
}

async function storeAuthorisation(tx: Tx, { ctx, transferId, plan: { source, network, coin } }: Wanted): Promise<void> {
  if (coin.address === undefined) throw new Error('the chain’s own coin is not moved by authorisation')
  const createdAt = ctx.clock.now()
  await insertAuthorisation(tx, {
    transferId,
    network: network.name,
    asset: coin.address,
    fromAddress: source.address,
    // By chance: nobody can guess one and use it up before.
    nonce: ctx.random.bytes(nonceBytes),
    validBefore: instantOf(createdAt.getTime() + validMs),
    createdAt,
  })
}
