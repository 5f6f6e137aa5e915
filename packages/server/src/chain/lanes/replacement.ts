import { type Hex, hexToBytes, l1FeeOf } from '@purser/protocol'
import type { Deps } from '../../platform/ctx.ts'
import { isProblem } from '../../platform/errors.ts'
import { type Fees, takesDataGas } from '../fees/fees.ts'
import type { Chain } from '../port.ts'
import { listSigned } from './recovery-store.ts'
import type { AttemptRow, LaneTransactionRow } from './store.ts'

/** From which the fees of a refused transaction's next attempt are computed. */
interface FeeParts {
  readonly deps: Pick<Deps, 'db' | 'clock'>
  readonly chain: Pick<Chain, 'network' | 'offeredFees' | 'agreedHoldings' | 'transactionCount'>
}

/** Whether a node's refusal says that the gas limit does not cover the bytes of the transaction. */
export function lacksGas(words: string): boolean {
  return /intrinsic gas/i.test(words)
}

/** A node that refuses every gas limit gets a new attempt no more often than this. */
const raiseGasMs = 60_000

/**
 * The fees with which a transaction is signed again, so that its gas limit covers its bytes. Undefined if they take no more gas than when it was
 * signed, and if it was signed less than a minute ago.
 */
export async function feesForMoreGas(
  { deps, chain }: FeeParts,
  transaction: LaneTransactionRow,
  last: AttemptRow,
): Promise<Fees | undefined> {
  const signedMs = deps.clock.now().getTime() - last.createdAt.getTime()
  if (!takesDataGas(chain.network) || signedMs < raiseGasMs) return undefined
  const [{ maxFee, priorityFee, baseFee, dataGas }, [latest]] = await Promise.all([
    chain.offeredFees(),
    listSigned(deps.db, transaction.id),
  ])
  const gasLimit = transaction.gasLimit + l1FeeOf(dataGas, transaction.dataBytes)
  if (latest === undefined || signedGasLimit(latest.raw) >= gasLimit) return undefined
  return baseFee > last.maxFee ? { maxFee, priorityFee } : last
}

/**
 * The fees with which an account can pay for its next transaction from its whole balance, if fees have risen since the balance was checked and it can
 * pay for none of the attempts. Undefined if it can pay for an attempt that covers the base fee and the gas of its bytes, if the affordable fee is
 * below the base fee, and while the nodes do not agree on the balance. The transaction then waits for coin or for a lower base fee.
 */
export async function affordableFees(
  parts: FeeParts,
  transaction: LaneTransactionRow,
  last: Fees,
): Promise<Fees | undefined> {
  try {
    return await feesWithin(parts, transaction, last)
  } catch (error) {
    if (!isProblem(error, 'chain-unavailable')) throw error
    return undefined
  }
}

async function feesWithin(
  { chain, deps }: FeeParts,
  { id, sender, nonce, value, gasLimit, dataBytes }: LaneTransactionRow,
  last: Fees,
): Promise<Fees | undefined> {
  if (chain.network.nativeCoin === null) return undefined
  const [[holding], next, { baseFee, l1Fee, dataGas }, signed] = await Promise.all([
    chain.agreedHoldings([{ account: sender, tokens: [] }]),
    chain.transactionCount(sender),
    chain.offeredFees(),
    listSigned(deps.db, id),
  ])
  // Rounded down, so that it never exceeds the balance.
  const gasOfData = l1FeeOf(dataGas, dataBytes)
  const beside = gasOfData === 0n ? l1FeeOf(l1Fee, dataBytes) : 0n
  const payable = (holding?.native ?? 0n) - value - beside
  const most = payable / (gasLimit + gasOfData)
  if (nonce !== next || most <= 0n || most < baseFee) return undefined
  // `dataGas` is twice what the bytes take now, so half of it covers them.
  const gasNeeded = gasLimit + gasOfData / 2n
  const isPayable = ({ maxFee, raw }: (typeof signed)[number]): boolean => {
    const limit = signedGasLimit(raw)
    return maxFee >= baseFee && limit >= gasNeeded && limit * maxFee <= payable
  }
  return signed.some(isPayable)
    ? undefined
    : { maxFee: most, priorityFee: last.priorityFee < most ? last.priorityFee : most }
}

/** The members of an EIP-1559 transaction before its gas limit: chain ID, nonce, priority fee and maximum fee. */
const membersBefore = 4

/** The gas limit in the bytes of a signed EIP-1559 transaction. Source: EIP-1559; yellow paper, appendix B. */
export function signedGasLimit(raw: Hex): bigint {
  const bytes = hexToBytes(raw)
  const listHead = bytes[1] ?? 0
  let at = 2 + Math.max(0, listHead - 0xf7)
  for (let passed = 0; passed < membersBefore; passed++) at = endOf(bytes, at)
  const head = bytes[at] ?? 0
  const digits = bytes.subarray(head < 0x80 ? at : at + 1, endOf(bytes, at))
  return digits.reduce((number, byte) => number * 256n + BigInt(byte), 0n)
}

/** Returns the place behind the integer that begins here. One byte below 0x80 is its own encoding. */
function endOf(bytes: Uint8Array, at: number): number {
  return at + 1 + Math.max(0, (bytes[at] ?? 0) - 0x80)
}
