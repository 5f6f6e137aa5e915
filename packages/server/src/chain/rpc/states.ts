import {
  AbiMalformed,
  type Address,
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
  type Network,
  permit2Address,
} from '@purser/protocol'
import { fail } from '../errors.ts'
import type { BalanceQuestion, Finality, NonceState, QuorumReads } from '../quorum-port.ts'
import type { Decision, Quorum } from './quorum.ts'
import { readHex, readQuantity } from './read.ts'
import { resultOf } from './receipts.ts'
import type { Rpc, RpcAnswer, RpcCall } from './rpc.ts'

type StateReads = Pick<QuorumReads, 'authorizationStates' | 'permitStates' | 'balancesAt' | 'noncesAt'>

/** Questions that one multicall carries. */
const questionsMax = 500

/** What a majority reads from the state of one block. */
export function createStates(network: Network, quorum: Quorum): StateReads {
  const payments: Finality = { depth: network.confirmationDepth }
  const statesOf = async (questions: readonly Question[]): Promise<readonly NonceState[]> => {
    if (questions.length > questionsMax) throw new RangeError('more questions than one multicall carries')
    const decision = questions.length === 0 ? undefined : await quorum.decide(payments)
    if (decision === undefined) return questions.map(() => 'undecided')
    const calls = questions.map(({ call }) => call)
    const ask = async (rpc: Rpc) =>
      (await readEach(rpc, decision, calls)).map((result, index) => voteOf(questions[index], result))
    const votes = await decision.vote({ count: questions.length, ask })
    return questions.map(({ isPast }, index) => stateOf(votes[index], isPast(decision.block.timestampSeconds)))
  }
  const decided = async (finality: Finality): Promise<Decision> => (await quorum.decide(finality)) ?? undecided()
  return {
    authorizationStates: (ids) =>
      statesOf(
        ids.map(({ token, authorizer, nonce, validBefore }) => ({
          call: { target: token, allowFailure: true, callData: encodeAuthorizationState(authorizer, nonce) },
          isUsed: decodeBool,
          isPast: (time) => time >= validBefore,
        })),
      ),
    permitStates: (ids) =>
      statesOf(
        ids.map(({ owner, nonce, deadline }) => ({
          call: { target: permit2Address, allowFailure: true, callData: encodeNonceBitmap(owner, nonce) },
          isUsed: (data) => isNonceSpent(decodeUint256(data), nonce),
          isPast: (time) => time > deadline,
        })),
      ),
    async balancesAt(questions, finality = payments) {
      const decision = await decided(finality)
      const ask = (rpc: Rpc) => readBalances(rpc, decision, questions)
      return { block: decision.block, amounts: all(await decision.vote({ count: questions.length, ask })) }
    },
    async noncesAt(accounts, finality = payments) {
      const decision = await decided(finality)
      const calls = accounts.map((account) => ({
        method: 'eth_getTransactionCount',
        params: [account, decision.at],
      }))
      const ask = async (rpc: Rpc) =>
        (await rpc.batch(calls)).map((answer) => readQuantity(resultOf(answer), 'transaction count'))
      return all(await decision.vote({ count: accounts.length, ask }))
    },
  }
}

interface Question {
  readonly call: Call3
  readonly isUsed: (data: Hex) => boolean
  readonly isPast: (timestampSeconds: bigint) => boolean
}

/** A contract that fails or answers something else has no vote; its neighbors have theirs. */
function voteOf(question: Question | undefined, result: Call3Result): 'used' | 'unused' | undefined {
  if (question === undefined || !result.success) return undefined
  try {
    return question.isUsed(result.returnData) ? 'used' : 'unused'
  } catch (error) {
    if (error instanceof AbiMalformed) return undefined
    throw error
  }
}

function stateOf(vote: 'used' | 'unused' | undefined, isPast: boolean): NonceState {
  if (vote !== 'unused') return vote ?? 'undecided'
  return isPast ? 'expired' : 'open'
}

/** Each call's result in one multicall at the decision block; one by one where the network has no multicall contract. */
async function readEach(rpc: Rpc, { at }: Decision, calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const answer = await rpc.call('eth_call', [{ to: multicall3Address, data: encodeAggregate3(calls) }, at])
  const data = readHex(resultOf(answer), 'call result')
  if (data === '0x') return readApart(rpc, at, calls)
  try {
    return decodeAggregate3(data, calls.length)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

async function readApart(rpc: Rpc, at: Decision['at'], calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const answers = await rpc.batch(calls.map(({ target, callData }) => ethCall(target, callData, at)))
  return answers.map((answer) => ({
    success: answer.ok,
    returnData: answer.ok ? readHex(answer.result, 'call result') : '0x',
  }))
}

function ethCall(to: Address, data: Hex, at: Decision['at']): RpcCall {
  return { method: 'eth_call', params: [{ to, data }, at] }
}

async function readBalances(
  rpc: Rpc,
  { at }: Decision,
  questions: readonly BalanceQuestion[],
): Promise<readonly bigint[]> {
  const answers = await rpc.batch(
    questions.map(({ account, asset }) =>
      asset === 'coin'
        ? { method: 'eth_getBalance', params: [account, at] }
        : ethCall(asset, encodeBalanceOf(account), at),
    ),
  )
  return answers.map((answer, index) => balanceOf(answer, questions[index]?.asset === 'coin'))
}

function balanceOf(answer: RpcAnswer, isCoin: boolean): bigint {
  const result = resultOf(answer)
  if (isCoin) return readQuantity(result, 'balance')
  try {
    return decodeUint256(readHex(result, 'balance'))
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

function all<T>(votes: readonly (T | undefined)[]): readonly T[] {
  return votes.map((vote) => vote ?? undecided())
}

function undecided(): never {
  throw fail('chain-unavailable', {}, new Error('too few nodes agree'))
}
