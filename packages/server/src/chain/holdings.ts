import {
  type Address,
  bytesToHex,
  type Call3,
  decodeAggregate3,
  decodeUint256,
  encodeAggregate3,
  encodeBalanceOf,
  hexToBytes,
  keccak256,
  multicall3Address,
  type Network,
  utf8,
} from '@purser/protocol'
import { fail } from './errors.ts'
import type { Holding, HoldingQuestion } from './port.ts'
import { readHex } from './read.ts'
import type { Rpc, RpcCall } from './rpc.ts'

/** Balances in one call; each costs a node some 5,000 gas, and nodes allow tens of millions. */
const callsMax = 500

const getEthBalance = bytesToHex(keccak256(utf8('getEthBalance(address)')).subarray(0, 4))

/**
 * What accounts hold as of the latest block: one Multicall3 call for up to 500 balances, all of them in one HTTP request. Every
 * answer must be there and be one number. A token that answers nothing is a fault of the node or of the network's token list,
 * and is told as `chain-unavailable`: it never becomes a balance of zero.
 */
export async function readHoldings(
  rpc: Rpc,
  network: Network,
  questions: readonly HoldingQuestion[],
): Promise<readonly Holding[]> {
  const calls = questions.flatMap((question) => callsOf(network, question))
  const groups = Array.from({ length: Math.ceil(calls.length / callsMax) }, (_, index) =>
    calls.slice(index * callsMax, (index + 1) * callsMax),
  )
  const answers = await rpc.batch(groups.map(aggregate))
  const balances = groups.flatMap((group, index) => {
    const answer = answers[index]
    return readBalances(answer?.ok === true ? answer.result : undefined, group.length)
  })
  return share(network, questions, balances)
}

function callsOf({ nativeCoin }: Network, { account, tokens }: HoldingQuestion): Call3[] {
  const native = { target: multicall3Address, allowFailure: true, callData: encodeNative(account) }
  const held = tokens.map((token) => ({ target: token, allowFailure: true, callData: encodeBalanceOf(account) }))
  return nativeCoin === null ? held : [native, ...held]
}

function encodeNative(account: Address): `0x${string}` {
  const word = new Uint8Array(32)
  word.set(hexToBytes(account), 12)
  return `${getEthBalance}${bytesToHex(word).slice(2)}`
}

function aggregate(group: readonly Call3[]): RpcCall {
  return { method: 'eth_call', params: [{ to: multicall3Address, data: encodeAggregate3(group) }, 'latest'] }
}

function readBalances(result: unknown, count: number): bigint[] {
  const data = readHex(result, 'call result')
  try {
    return decodeAggregate3(data, count).map(({ success, returnData }) => {
      if (!success) throw new Error('a token would not say a balance')
      return decodeUint256(returnData)
    })
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

/** Gives each question its own balances, in the order in which they were asked for. */
function share({ nativeCoin }: Network, questions: readonly HoldingQuestion[], balances: readonly bigint[]): Holding[] {
  let at = 0
  const next = (): bigint => {
    const balance = balances[at++]
    if (balance === undefined) throw new Error('fewer balances than questions')
    return balance
  }
  return questions.map(({ tokens }) => ({
    native: nativeCoin === null ? undefined : next(),
    tokens: tokens.map(next),
  }))
}
