import { type Address, l1FeeOf } from '@purser/protocol'
import type { Fees } from '../fees.ts'
import type { Chain } from '../port.ts'

/** What its account would pay for beside the gas, and the gas that it may use. */
interface Costly {
  readonly nonce: bigint
  readonly value: bigint
  readonly gasLimit: bigint
  readonly dataBytes: number
}

/**
 * What an account can offer for its next transaction where it can pay for none of the forms that it signed so far: all that it has. Undefined
 * where it can pay for one of them that a block would take, and where a block would not take what it can offer: then it waits for the coin, or
 * for the base fee to fall.
 */
export async function affordableFees(
  chain: Pick<Chain, 'network' | 'holdings' | 'head' | 'transactionCount' | 'offeredFees'>,
  account: Address,
  { nonce, value, gasLimit, dataBytes }: Costly,
  offered: readonly Fees[],
): Promise<Fees | undefined> {
  const last = offered.at(-1)
  if (chain.network.nativeCoin === null || last === undefined) return undefined
  const [[held], { baseFee }, next, { l1Fee }] = await Promise.all([
    chain.holdings([{ account, tokens: [] }]),
    chain.head(),
    chain.transactionCount(account, 'latest'),
    chain.offeredFees(),
  ])
  // Rounded down, so that it is never more than there is.
  const most = ((held?.native ?? 0n) - value - l1FeeOf(l1Fee, dataBytes)) / gasLimit
  if (nonce !== next || most <= 0n || most < baseFee) return undefined
  if (offered.some(({ maxFee }) => maxFee <= most && maxFee >= baseFee)) return undefined
  return { maxFee: most, priorityFee: last.priorityFee < most ? last.priorityFee : most }
}
