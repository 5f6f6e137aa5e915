import {
  decodeUint256,
  encodeBalanceOf,
  encodeNonceBitmap,
  encodePermit2Allowance,
  encodePermit2Settle,
  type Hex,
  isNonceSpent,
  type Permit2Transfer,
  permit2Address,
} from '@purser/protocol'
import { fail } from '../errors.ts'
import type { Permit2Facts, Permit2Probe } from '../port.ts'
import { callFaultOf } from '../rpc/call-fault.ts'
import type { Decision } from '../rpc/quorum.ts'
import { invalidResponse, readHex } from '../rpc/read.ts'
import type { Rpc, RpcCall, RpcResponse } from '../rpc/rpc.ts'

/** Gas limit of the trial. It equals what settlement allows; otherwise a wallet could pass here and run out of gas there. */
const trialGas = 460_000
/** Gas of a transaction in addition to the grant of its payment. */
export const transactionGas = 60_000

/**
 * Inspects a Permit2 payment in one request to the node. Each read is a separate call, so that a payer's contract can only affect its own trial. A
 * failed trial that the reads do not explain is retried as of the pending block, since on an idle chain the latest block lags behind the clock.
 */
export async function inspectPermit2(rpc: Rpc, probe: Permit2Probe): Promise<Permit2Facts> {
  const first = await inspectAsOf(rpc, probe, 'latest')
  if (isConclusive(probe, first)) return first
  return inspectAsOf(rpc, probe, 'pending')
}

/**
 * Whether a node would settle the payment: the condition under which `whyNotPermit2` accepts one that is proven. The allowance does not matter, since a
 * payment that carries its own approval (EIP-2612) has none before, and every other one fails its trial without it.
 */
export function wouldSettle({ trial, proxyDeployed, nonceUsed, balance }: Permit2Facts, amount: bigint): boolean {
  return trial.ok && proxyDeployed && !nonceUsed && balance >= amount
}

function isConclusive({ settlement }: Permit2Probe, facts: Permit2Facts): boolean {
  const { amount, permit2612 } = settlement
  const isUnapproved = permit2612 === undefined && facts.allowance < amount
  return facts.trial.ok || facts.nonceUsed || !facts.proxyDeployed || facts.balance < amount || isUnapproved
}

async function inspectAsOf(rpc: Rpc, probe: Permit2Probe, block: 'latest' | 'pending'): Promise<Permit2Facts> {
  const { owner, token, nonce } = probe.settlement.transfer
  const responses = await rpc.batch([...readings(probe, block), trial(probe, block)])
  const [proxy, payer, balance, allowance, bitmap, settle] = responses
  if (settle === undefined || (!settle.ok && callFaultOf(settle) === undefined))
    throw invalidResponse(settle?.message ?? 'no answer')
  return {
    proxyDeployed: codeOf(proxy) !== '0x',
    payerHasCode: codeOf(payer) !== '0x',
    balance: wordOf(balance, `balance of ${owner} in ${token}`),
    allowance: wordOf(allowance, `allowance of ${owner} in ${token}`),
    nonceUsed: isNonceSpent(wordOf(bitmap, 'nonce bitmap'), nonce),
    trial: settle.ok ? { ok: true } : { ok: false, data: settle.data ?? null },
  }
}

function readings({ settlement }: Permit2Probe, block: string): RpcCall[] {
  const { owner, token, spender, nonce } = settlement.transfer
  return [
    { method: 'eth_getCode', params: [spender, block] },
    { method: 'eth_getCode', params: [owner, block] },
    ethCall({ to: token, data: encodeBalanceOf(owner) }, block),
    ethCall({ to: token, data: encodePermit2Allowance(owner) }, block),
    ethCall({ to: permit2Address, data: encodeNonceBitmap(owner, nonce) }, block),
  ]
}

function trial({ settlement, settler, gas }: Permit2Probe, block: string): RpcCall {
  const limit = gas === undefined ? trialGas : Number(gas) + transactionGas
  const data = encodePermit2Settle(settlement)
  return ethCall({ from: settler, to: settlement.transfer.spender, data, gas: `0x${limit.toString(16)}` }, block)
}

function ethCall(call: Readonly<Record<string, string>>, block: BlockParameter): RpcCall {
  return { method: 'eth_call', params: [call, block] }
}

function codeOf(response: RpcResponse | undefined): Hex {
  return readHex(response?.ok === true ? response.result : undefined, 'code')
}

/** One word. A missing contract returns `0x`, which counts as zero. */
function wordOf(response: RpcResponse | undefined, what: string): bigint {
  const result = readHex(response?.ok === true ? response.result : undefined, what)
  if (result === '0x') return 0n
  try {
    return decodeUint256(result)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

/** A block tag, number, or hash (EIP-1898). */
type BlockParameter = string | Decision['at']

/** Whether the nonce is used or invalidated as of this block. */
export async function isSpent(
  rpc: Rpc,
  { owner, nonce }: Pick<Permit2Transfer, 'owner' | 'nonce'>,
  block: BlockParameter,
): Promise<boolean> {
  const call = ethCall({ to: permit2Address, data: encodeNonceBitmap(owner, nonce) }, block)
  return isNonceSpent(wordOf(await rpc.call(call.method, call.params), 'nonce bitmap'), nonce)
}
