import { decodeUint256, encodeGetNonce, type Hex, tempoNonceManager, uint256Max } from '@purser/protocol'
import { fail } from '../errors.ts'
import type { TempoRefusal, TempoSendResponse, TempoTransaction, TempoTrial } from '../port.ts'
import { electorateOf } from '../rpc/acceptance.ts'
import { readHex, readQuantity, readReceipt } from '../rpc/read.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse } from '../rpc/rpc.ts'
import { sendAll } from '../rpc/send.ts'

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
  const fault = await nonceFault(rpc, transaction)
  if (fault !== undefined) return { ok: false, reason: fault }
  const response = await rpc.call('eth_call', [requestOf(transaction), 'latest'])
  if (response.ok) {
    readHex(response.result, 'call result')
    return { ok: true }
  }
  const reason = refusalOf(response)
  if (reason === undefined) throw fail('chain-unavailable', {}, new Error(`eth_call: ${response.message}`))
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
 * Sends final transactions to all nodes that answer. A missing response counts as sent, because only the response may be lost. A transaction is refused
 * only when a majority of the configured nodes refuses it and no node that answered in time took it: otherwise a node that took it may bring it into
 * a block.
 */
export async function sendTempo(rpc: NodeRpc, raws: readonly Hex[]): Promise<TempoSendResponse[]> {
  const { needed } = electorateOf(rpc.voters)
  const isDecided = (responses: readonly RpcResponse[]) => responses.length >= needed || responses.some(isTaken)
  return (await sendAll(rpc, raws, isDecided)).map((responses) => {
    const [first] = responses
    return first !== undefined && responses.length >= needed && !responses.some(isTaken)
      ? sendResponse(first)
      : { outcome: 'sent' }
  })
}

const isTaken = (response: RpcResponse): boolean => sendResponse(response).outcome === 'sent'

function sendResponse(response: RpcResponse): TempoSendResponse {
  if (response.ok) return { outcome: 'sent' }
  if (/failed to decode|invalid signature|rlp/i.test(response.message))
    return { outcome: 'refused', reason: 'malformed' }
  const reason = refusalOf(response)
  return reason === undefined ? { outcome: 'sent' } : { outcome: 'refused', reason }
}

function refusalOf(response: Extract<RpcResponse, { ok: false }>): TempoRefusal | undefined {
  if (response.data?.startsWith(insufficientBalance) === true) return 'insufficient-balance'
  return (
    refusalMessages.find(([pattern]) => pattern.test(response.message))?.[1] ??
    (response.code === 3 ? 'reverted' : undefined)
  )
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}

/**
 * Returns why no block can include a transaction with this nonce now. `nonce-too-high`: there is a gap before it, so that its sender must sign
 * another one first; a node accepts and keeps such a transaction, but it may never be mined. `nonce-too-low`: a mined transaction has the nonce, and
 * it is another one. An expiring nonce (TIP-1009) is zero and has neither. Throws `chain-unavailable`. Source: Tempo Transaction specification,
 * "Nonces". The pending nonce is read too, since payments of one sender may follow each other.
 */
async function nonceFault(
  rpc: Rpc,
  { sender, nonceKey, nonce, hash }: TempoTransaction,
): Promise<'nonce-too-high' | 'nonce-too-low' | undefined> {
  if (nonceKey === uint256Max) return nonce === 0n ? undefined : 'nonce-too-high'
  const calls = nonceKey === 0n ? accountNonceCalls(sender) : [keyedNonceCall(sender, nonceKey)]
  const [mined = 0n, ...others] = (await rpc.batch(calls)).map((response) => {
    const result = response.ok ? response.result : undefined
    return nonceKey === 0n ? readQuantity(result, 'nonce') : wordOf(readHex(result, 'nonce'))
  })
  if ([mined, ...others].every((next) => nonce > next)) return 'nonce-too-high'
  if (nonce >= mined) return undefined
  const own = hash && readReceipt((await rpc.result('eth_getTransactionReceipt', [hash])) ?? null, hash)
  return own === undefined ? 'nonce-too-low' : undefined
}

/** The first is of the latest block. */
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
