import { decodeUint256, encodeGetNonce, type Hex, tempoNonceManager, uint256Max } from '@purser/protocol'
import { fail } from './errors.ts'
import type { TempoRefusal, TempoSendAnswer, TempoTransaction, TempoTrial } from './port.ts'
import { readHex, readQuantity } from './rpc/read.ts'
import type { NodeRpc, Rpc, RpcAnswer, RpcCall } from './rpc/rpc.ts'
import { sendToEach } from './rpc/send.ts'

/** Error messages of nodes that refuse to run a transaction. A message that is not listed is not about the transaction. */
const refusalMessages: readonly (readonly [RegExp, TempoRefusal])[] = [
  [/insufficient fee token|insufficient funds|fee token.*(balance|liquidity)|lack of funds/i, 'insufficient-fee'],
  [/0x832f98b5|InsufficientBalance/i, 'insufficient-balance'],
  [/expired|valid_?before/i, 'expired'],
  [/out ?of ?gas|OOG|intrinsic gas|gas required exceeds|CallGasCost/i, 'out-of-gas'],
  [/revert|EVM error/i, 'reverted'],
]

/** Selector of TIP-20's InsufficientBalance(uint256,uint256,address). */
const insufficientBalance = '0x832f98b5'

/**
 * Gas for the sponsor's signature, which a call does not include (10,800 measured, plus a margin). Running out of gas would be at the sponsor's
 * expense.
 */
const sponsorSignatureGas = 15_000n

/**
 * Runs the transaction's only call on the latest block, with its sender and limits, and without a fee when a sponsor pays. Nodes ignore the nonce
 * in a call, so it is checked first. Throws `chain-unavailable` for an error that is not about the transaction.
 */
export async function tryTempo(rpc: Rpc, transaction: TempoTransaction): Promise<TempoTrial> {
  if (transaction.feePaidBy === 'sponsor' && transaction.gasLimit <= sponsorSignatureGas)
    return { ok: false, reason: 'out-of-gas' }
  if (await leavesGap(rpc, transaction)) return { ok: false, reason: 'nonce-too-high' }
  const answer = await rpc.call('eth_call', [requestOf(transaction), 'latest'])
  if (answer.ok) {
    readHex(answer.result, 'call result')
    return { ok: true }
  }
  const reason = refusalOf(answer)
  if (reason === undefined) throw fail('chain-unavailable', {}, new Error(`eth_call: ${answer.message}`))
  return { ok: false, reason }
}

/** The call is given in `to` and `data`, which every node reads; anvil ignores `calls`. */
function requestOf(transaction: TempoTransaction): Readonly<Record<string, unknown>> {
  const {
    calls,
    feePaidBy,
    sender,
    nonceKey,
    nonce,
    validBefore,
    gasLimit,
    maxFeePerGas,
    maxPriorityFeePerGas,
    feeToken,
  } = transaction
  const [call] = calls
  const fee =
    feePaidBy === 'sponsor'
      ? {}
      : {
          maxFeePerGas: quantity(maxFeePerGas),
          maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
          ...(feeToken === undefined ? {} : { feeToken }),
        }
  return {
    from: sender,
    to: call?.to,
    data: call?.data,
    gas: quantity(feePaidBy === 'sponsor' ? gasLimit - sponsorSignatureGas : gasLimit),
    nonceKey: quantity(nonceKey),
    nonce: quantity(nonce),
    ...(validBefore === undefined ? {} : { validBefore: quantity(validBefore) }),
    ...fee,
  }
}

/**
 * Sends a final transaction to all nodes that answer. A missing answer counts as sent, because only the answer may be lost. The transaction is
 * refused only when every node that answers refuses it.
 */
export async function sendTempo(rpc: NodeRpc, raw: Hex): Promise<TempoSendAnswer> {
  const answers = await sendToEach(rpc, [{ method: 'eth_sendRawTransaction', params: [raw] }])
  const outcomes = answers.map(([answer]) => sendAnswer(answer))
  return outcomes.find(({ outcome }) => outcome === 'sent') ?? outcomes[0] ?? { outcome: 'sent' }
}

function sendAnswer(answer: RpcAnswer | undefined): TempoSendAnswer {
  if (answer === undefined || answer.ok) return { outcome: 'sent' }
  if (/failed to decode|invalid signature|rlp/i.test(answer.message)) return { outcome: 'refused', reason: 'malformed' }
  const reason = refusalOf(answer)
  return reason === undefined ? { outcome: 'sent' } : { outcome: 'refused', reason }
}

function refusalOf(answer: Extract<RpcAnswer, { ok: false }>): TempoRefusal | undefined {
  if (answer.data?.startsWith(insufficientBalance) === true) return 'insufficient-balance'
  return (
    refusalMessages.find(([pattern]) => pattern.test(answer.message))?.[1] ??
    (answer.code === 3 ? 'reverted' : undefined)
  )
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

/**
 * Whether there is a nonce gap before this transaction, so that no block can include it until its sender signs another one. A node accepts and
 * keeps such a transaction, but it may never be mined. An expiring nonce (TIP-1009) is zero and leaves no gap. Throws `chain-unavailable`. Source:
 * Tempo Transaction specification, "Nonces". The pending nonce is read too, since payments of one sender may follow each other.
 */
async function leavesGap(rpc: Rpc, { sender, nonceKey, nonce }: TempoTransaction): Promise<boolean> {
  if (nonce === 0n) return false
  if (nonceKey === uint256Max) return true
  const calls = nonceKey === 0n ? accountNonceCalls(sender) : [keyedNonceCall(sender, nonceKey)]
  const answers = await rpc.batch(calls)
  return answers.every((answer) => {
    const result = answer.ok ? answer.result : undefined
    return nonce > (nonceKey === 0n ? readQuantity(result, 'nonce') : wordOf(readHex(result, 'nonce')))
  })
}

function accountNonceCalls(sender: string): RpcCall[] {
  return ['latest', 'pending'].map((block) => ({ method: 'eth_getTransactionCount', params: [sender, block] }))
}

function keyedNonceCall(sender: TempoTransaction['sender'], nonceKey: bigint): RpcCall {
  return { method: 'eth_call', params: [{ to: tempoNonceManager, data: encodeGetNonce(sender, nonceKey) }, 'latest'] }
}

function wordOf(result: `0x${string}`): bigint {
  try {
    return decodeUint256(result)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}
