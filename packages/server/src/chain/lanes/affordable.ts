import { type Address, l1FeeOf } from '@purser/protocol'
import type { Fees } from '../fees.ts'
import type { Chain } from '../port.ts'

/** The parts of a transaction that its account must pay for. */
interface Costly {
  readonly nonce: bigint
  readonly value: bigint
  readonly gasLimit: bigint
  readonly dataBytes: number
}

/**
 * The fees that an account can still afford for its next transaction, when it cannot pay for any of the attempts signed so far: its whole balance.
 * Undefined when it can pay for an attempt that covers the base fee, and when the affordable fee is below the base fee. The transaction then waits
 * for coin or for a lower base fee.
 */
export async function affordableFees(
  chain: Pick<Chain, 'network' | 'holdings' | 'head' | 'transactionCount' | 'offeredFees'>,
  account: Address,
  { nonce, value, gasLimit, dataBytes }: Costly,
  offered: readonly Fees[],
): Promise<Fees | undefined> {
  const last = offered.at(-1)
  if (chain.network.nativeCoin === null || last === undefined) return undefined
  const [[holding], { baseFee }, next, { l1Fee }] = await Promise.all([
    chain.holdings([{ account, tokens: [] }]),
    chain.head(),
    chain.transactionCount(account, 'latest'),
    chain.offeredFees(),
  ])
  // Rounded down, so that it never exceeds the balance.
  const most = ((holding?.native ?? 0n) - value - l1FeeOf(l1Fee, dataBytes)) / gasLimit
  if (nonce !== next || most <= 0n || most < baseFee) return undefined
  if (offered.some(({ maxFee }) => maxFee <= most && maxFee >= baseFee)) return undefined
  return { maxFee: most, priorityFee: last.priorityFee < most ? last.priorityFee : most }
}
