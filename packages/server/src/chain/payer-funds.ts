import {
  AbiMalformed,
  type Call3,
  type Call3Result,
  decodeAggregate3,
  decodeBool,
  decodeUint256,
  encodeAggregate3,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeNonceBitmap,
  type Hex,
  isNonceSpent,
  multicall3Address,
  permit2Address,
} from '@purser/protocol'
import { fail } from './errors.ts'
import type { PayerFunds, PayerQuestion } from './port.ts'
import { readHex } from './rpc/read.ts'
import type { Rpc } from './rpc/rpc.ts'

/** Reads everything in one Multicall3 call, or in one request of several calls on a network without Multicall3. */
export async function readPayerFunds(
  rpc: Rpc,
  { token, account, nonces, permits }: PayerQuestion,
): Promise<PayerFunds> {
  const call = (target: Call3['target'], callData: Hex): Call3 => ({ target, allowFailure: true, callData })
  const calls = [
    call(token, encodeBalanceOf(account)),
    ...nonces.map((nonce) => call(token, encodeAuthorizationState(account, nonce))),
    ...permits.map((nonce) => call(permit2Address, encodeNonceBitmap(account, nonce))),
  ]
  const [balance, ...states] = await readEach(rpc, calls)
  const rawBalance = decoded(balance, decodeUint256)
  if (rawBalance === undefined)
    throw fail('chain-unavailable', {}, new Error('the token did not answer with a balance'))
  const [ofNonces, ofPermits] = [states.slice(0, nonces.length), states.slice(nonces.length)]
  return {
    rawBalance,
    spentNonces: nonces.filter((_, index) => decoded(ofNonces[index], decodeBool) === true),
    spentPermits: permits.filter((nonce, index) => isNonceSpent(decoded(ofPermits[index], decodeUint256) ?? 0n, nonce)),
  }
}

async function readEach(rpc: Rpc, calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const data = encodeAggregate3(calls)
  const answer = readHex(await rpc.result('eth_call', [{ to: multicall3Address, data }, 'latest']), 'call result')
  if (answer !== '0x') {
    try {
      return decodeAggregate3(answer, calls.length)
    } catch (error) {
      throw fail('chain-unavailable', {}, error)
    }
  }
  const answers = await rpc.batch(
    calls.map(({ target, callData }) => ({ method: 'eth_call', params: [{ to: target, data: callData }, 'latest'] })),
  )
  return answers.map((one) => ({ success: one.ok, returnData: one.ok ? readHex(one.result, 'call result') : '0x' }))
}

/** Undefined when the call failed or returned malformed data. */
function decoded<T>(result: Call3Result | undefined, decode: (data: Hex) => T): T | undefined {
  if (result?.success !== true) return undefined
  try {
    return decode(result.returnData)
  } catch (error) {
    if (error instanceof AbiMalformed) return undefined
    throw error
  }
}
