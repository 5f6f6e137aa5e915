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
import { fail } from './errors.ts'
import type { Holding, HoldingQuestion } from './port.ts'
import { readHex } from './rpc/read.ts'
import type { Rpc } from './rpc/rpc.ts'

/** Balances in one call; each costs a node some 5,000 gas, and nodes allow tens of millions. */
const callsMax = 500

const getEthBalance = bytesToHex(keccak256(utf8('getEthBalance(address)')).subarray(0, 4))

/**
 * What accounts hold as of the latest block, or of the block with the hash: one Multicall3 call for up to 500 balances, all of them in one HTTP request. Every
 * answer must be there and be one number. A token that answers nothing is a fault of the node or of the network's token list,
 * and is told as `chain-unavailable` in the place of the questions that name it: it never becomes a balance of zero.
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
  const answers = await rpc.batch(groups.map((group) => ({ method: 'eth_call', params: [aggregate(group), at] })))
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

function aggregate(group: readonly Call3[]) {
  return { to: multicall3Address, data: encodeAggregate3(group) }
}

function readBalances(result: unknown, count: number): (bigint | Error)[] {
  const data = readHex(result, 'call result')
  try {
    return decodeAggregate3(data, count).map(balanceOf)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

function balanceOf({ success, returnData }: ReturnType<typeof decodeAggregate3>[number]): bigint | Error {
  if (!success) return fail('chain-unavailable', {}, new Error('a token would not say a balance'))
  try {
    return decodeUint256(returnData)
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

/** Gives each question its own balances, in the order in which they were asked for. */
function share(
  { nativeCoin }: Network,
  questions: readonly HoldingQuestion[],
  balances: readonly (bigint | Error)[],
): (Holding | Error)[] {
  let at = 0
  return questions.map(({ tokens }) => {
    const count = tokens.length + (nativeCoin === null ? 0 : 1)
    const own = balances.slice(at, at + count)
    at += count
    const told = own.filter((balance) => typeof balance === 'bigint')
    if (told.length < count)
      return own.find((one) => one instanceof Error) ?? new Error('fewer balances than questions')
    return nativeCoin === null ? { native: undefined, tokens: told } : { native: told[0], tokens: told.slice(1) }
  })
}
