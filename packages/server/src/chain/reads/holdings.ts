import {
  type Address,
  bytesToHex,
  type Call3,
  decodeAggregate3,
  decodeUint256,
  encodeAggregate3,
  encodeBalanceOf,
  type Hex,
  hexToBytes,
  keccak256,
  multicall3Address,
  type Network,
  utf8,
} from '@purser/protocol'
import { fail } from '../errors.ts'
import type { Holding, HoldingQuestion } from '../port.ts'
import { readHex } from '../rpc/read.ts'
import type { Rpc, RpcCall } from '../rpc/rpc.ts'

/** Most balances in one call. Each costs about 5,000 gas; nodes allow tens of millions per call. */
const callsMax = 500

const getEthBalance = bytesToHex(keccak256(utf8('getEthBalance(address)')).subarray(0, 4))

/**
 * Reads account balances as of the latest block or the block with the given hash: one Multicall3 call per 500 balances, all in one HTTP request.
 * Every result must be a single number. A token that returns nothing points to a faulty node or token list; the questions that name it get a
 * `chain-unavailable` error, never a balance of zero.
 */
export async function readHoldings(
  rpc: Rpc,
  network: Network,
  questions: readonly HoldingQuestion[],
  blockHash?: Hex,
): Promise<readonly (Holding | Error)[]> {
  const calls = questions.flatMap((question) => callsOf(network, question))
  const groups = Array.from({ length: Math.ceil(calls.length / callsMax) }, (_, index) =>
    calls.slice(index * callsMax, (index + 1) * callsMax),
  )
  const at = blockHash === undefined ? 'latest' : { blockHash, requireCanonical: true }
  const responses = await rpc.batch(groups.map((group) => ({ method: 'eth_call', params: [aggregate(group), at] })))
  const balances = groups.flatMap((group, index) => {
    const response = responses[index]
    return readBalances(response?.ok === true ? response.result : undefined, group.length)
  })
  return splitByQuestion(network, questions, balances)
}

function callsOf({ nativeCoin }: Network, { account, tokens }: HoldingQuestion): Call3[] {
  const native = { target: multicall3Address, allowFailure: true, callData: encodeNative(account) }
  const tokenCalls = tokens.map((token) => ({ target: token, allowFailure: true, callData: encodeBalanceOf(account) }))
  return nativeCoin === null ? tokenCalls : [native, ...tokenCalls]
}

function encodeNative(account: Address): `0x${string}` {
  const word = new Uint8Array(32)
  word.set(hexToBytes(account), 12)
  return `${getEthBalance}${bytesToHex(word).slice(2)}`
}

function aggregate(group: readonly Call3[]) {
  return { to: multicall3Address, data: encodeAggregate3(group) }
}

/** One read of balances as of the latest block, for `readBalances`; at most 500. */
export function balancesCall(questions: readonly { readonly account: Address; readonly token: Address }[]): RpcCall {
  const calls = questions.map(({ account, token }) => {
    return { target: token, allowFailure: true, callData: encodeBalanceOf(account) }
  })
  return { method: 'eth_call', params: [aggregate(calls), 'latest'] }
}

/** Returns the balances of a Multicall3 response, in order; an error for a token that returns none. Throws `chain-unavailable` for another response. */
export function readBalances(result: unknown, count: number): (bigint | Error)[] {
  const data = readHex(result, 'call result')
  try {
    return decodeAggregate3(data, count).map(balanceOf)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

function balanceOf({ success, returnData }: ReturnType<typeof decodeAggregate3>[number]): bigint | Error {
  if (!success) return fail('chain-unavailable', {}, new Error('a token returned no balance'))
  try {
    return decodeUint256(returnData)
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

/** Splits the balances by question, in the order of the questions. */
function splitByQuestion(
  { nativeCoin }: Network,
  questions: readonly HoldingQuestion[],
  balances: readonly (bigint | Error)[],
): (Holding | Error)[] {
  let at = 0
  return questions.map(({ tokens }) => {
    const count = tokens.length + (nativeCoin === null ? 0 : 1)
    const own = balances.slice(at, at + count)
    at += count
    const present = own.filter((balance) => typeof balance === 'bigint')
    if (present.length < count)
      return own.find((one) => one instanceof Error) ?? new Error('fewer balances than questions')
    return nativeCoin === null
      ? { native: undefined, tokens: present }
      : { native: present[0], tokens: present.slice(1) }
  })
}
