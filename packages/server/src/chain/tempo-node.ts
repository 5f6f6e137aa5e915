import type { Hex } from '@purser/protocol'
import { fail } from './errors.ts'
import type { TempoRefusal, TempoSendAnswer, TempoTransaction, TempoTrial } from './port.ts'
import { readHex } from './rpc/read.ts'
import type { NodeRpc, Rpc, RpcAnswer } from './rpc/rpc.ts'
import { sendToEach } from './rpc/send.ts'
import { leavesGap } from './tempo-nonce.ts'

/** What nodes say of a transaction that they will not run. What is not in the list says nothing about the transaction. */
const refusalWords: readonly (readonly [RegExp, TempoRefusal])[] = [
  [/insufficient fee token|insufficient funds|fee token.*(balance|liquidity)|lack of funds/i, 'insufficient-fee'],
  [/0x832f98b5|InsufficientBalance/i, 'insufficient-balance'],
  [/expired|valid_?before/i, 'expired'],
  [/out ?of ?gas|OOG|intrinsic gas|gas required exceeds|CallGasCost/i, 'out-of-gas'],
  [/revert|EVM error/i, 'reverted'],
]

/** Selector of TIP-20's InsufficientBalance(uint256,uint256,address). */
const insufficientBalance = '0x832f98b5'

/** What the sponsor's signature costs beyond what a call shows (10,800, measured), with room: running out of gas is at the sponsor's expense. */
const sponsorSignatureGas = 15_000n

/**
 * Runs the transaction's only call in the latest block, as its sender and with its own limits; where a sponsor pays, without a fee. Nodes run it
 * whatever its nonce is, so that is looked at before.
 * Throws `chain-unavailable` for whatever a node says that is not about the transaction.
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

/** The call stands in `to` and `data`, which every node reads; anvil passes `calls` over. */
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
 * Sends a final transaction to all nodes that answer. No answer may mean that it was sent and the answer lost; it is refused only where every
 * node that answers refuses it.
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
    refusalWords.find(([pattern]) => pattern.test(answer.message))?.[1] ?? (answer.code === 3 ? 'reverted' : undefined)
  )
}

function quantity(value: bigint): Hex {
  return `0x${value.toString(16)}`
}
