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
import type { Finality, NonceState, QuorumReads, StateQuestion } from './port.ts'
import type { Decision, Quorum } from './quorum.ts'
import { readHex, readQuantity, resultOf } from './read.ts'
import type { Rpc, RpcCall } from './rpc.ts'

type StateReads = Pick<QuorumReads, 'authorizationStates' | 'permitStates' | 'stateAt' | 'noncesAt'>

/** Most questions in one multicall, and most multicalls of one read that are sent to a node at once. */
const questionsMax = 500
const groupsAtOnce = 8

/** State reads at one block, confirmed by a majority. */
export function createStates(network: Network, quorum: Quorum): StateReads {
  const payments: Finality = { depth: network.confirmationDepth }
  const statesOf = async (
    questions: readonly Question[],
    finality: Finality = payments,
  ): Promise<readonly NonceState[]> => {
    if (questions.length > questionsMax) throw new RangeError('too many questions for one multicall')
    const decision = questions.length === 0 ? undefined : await quorum.decide(finality)
    if (decision === undefined) return questions.map(() => 'undecided')
    const calls = questions.map(({ call }) => call)
    const ask = async (rpc: Rpc) =>
      (await readEach(rpc, decision, calls)).map((result, index) => voteOf(questions[index], result))
    const votes = await decision.vote({ count: questions.length, ask })
    return questions.map(({ isPast }, index) => stateOf(votes[index], isPast(decision.block.timestampSeconds)))
  }
  const stateAt: StateReads['stateAt'] = async (questions, { finality = payments, atMost } = {}) => {
    const decision = await quorum.decide(finality, atMost)
    if (decision === undefined) throw fail('chain-unavailable', {}, new Error('too few nodes agree on a block'))
    const ask = (rpc: Rpc) => readState(rpc, decision, questions)
    const values = await decision.vote({ count: questions.length, ask })
    return { block: decision.block, newest: decision.newest, values }
  }
  return {
    authorizationStates: (ids, finality) =>
      statesOf(
        ids.map(({ token, authorizer, nonce, validBefore }) => ({
          call: { target: token, allowFailure: true, callData: encodeAuthorizationState(authorizer, nonce) },
          isUsed: decodeBool,
          isPast: (time) => time >= validBefore,
        })),
        finality,
      ),
    permitStates: (ids, finality) =>
      statesOf(
        ids.map(({ owner, nonce, deadline }) => ({
          call: { target: permit2Address, allowFailure: true, callData: encodeNonceBitmap(owner, nonce) },
          isUsed: (data) => isNonceSpent(decodeUint256(data), nonce),
          isPast: (time) => time > deadline,
        })),
        finality,
      ),
    stateAt,
    async noncesAt(accounts, finality) {
      const questions = accounts.map((account) => ({ account, count: 'transactions' }) as const)
      const { values } = await stateAt(questions, { finality: finality ?? payments })
      return values.map((value) => {
        if (value === undefined) throw fail('chain-unavailable', {}, new Error('too few nodes agree on a nonce'))
        return value
      })
    },
  }
}

interface Question {
  readonly call: Call3
  readonly isUsed: (data: Hex) => boolean
  readonly isPast: (timestampSeconds: bigint) => boolean
}

/** Undefined (no vote) when the contract fails or returns malformed data. Other questions are not affected. */
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

/** Each call's result at the decision block, by multicall, or by separate calls on a network without the multicall contract. */
async function readEach(rpc: Rpc, { at }: Decision, calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const response = await rpc.call('eth_call', [{ to: multicall3Address, data: encodeAggregate3(calls) }, at])
  const data = readHex(resultOf(response), 'call result')
  if (data === '0x') return readSeparately(rpc, at, calls)
  try {
    return decodeAggregate3(data, calls.length)
  } catch (error) {
    throw fail('chain-unavailable', {}, error)
  }
}

async function readSeparately(rpc: Rpc, at: Decision['at'], calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const responses = await rpc.batch(calls.map(({ target, callData }) => ethCall(target, callData, at)))
  return responses.map((response) => ({
    success: response.ok,
    returnData: response.ok ? readHex(response.result, 'call result') : '0x',
  }))
}

function ethCall(to: Address, data: Hex, at: Decision['at']): RpcCall {
  return { method: 'eth_call', params: [{ to, data }, at] }
}

type Read = () => Promise<readonly (bigint | undefined)[]>

/** Undefined (no vote) for a contract that does not respond. Other questions are not affected. */
async function readState(
  rpc: Rpc,
  decision: Decision,
  questions: readonly StateQuestion[],
): Promise<readonly (bigint | undefined)[]> {
  const contracts = questions.flatMap((question) => contractCallOf(question) ?? [])
  const accounts = questions.filter((question) => contractCallOf(question) === undefined)
  const reads: Read[] = [
    async () => (await readInGroups(rpc, decision, contracts)).map(wordOf),
    async () => {
      const calls = accounts.map((question) => accountCallOf(question, decision))
      const responses = calls.length === 0 ? [] : await rpc.batch(calls)
      return responses.map((response) => readQuantity(resultOf(response), 'state of an account'))
    },
  ]
  const [ofContracts = [], ofAccounts = []] = await Promise.all(reads.map((read) => read()))
  const [contract, account] = [ofContracts.values(), ofAccounts.values()]
  return questions.map((question) => (contractCallOf(question) === undefined ? account : contract).next().value)
}

/** Sends some groups at once: a node has few connections, and the time of each request counts from when it begins to wait for one. */
async function readInGroups(rpc: Rpc, decision: Decision, calls: readonly Call3[]): Promise<readonly Call3Result[]> {
  const groups = Array.from({ length: Math.ceil(calls.length / questionsMax) }, (_, index) =>
    calls.slice(index * questionsMax, (index + 1) * questionsMax),
  )
  const results: Call3Result[] = []
  for (let at = 0; at < groups.length; at += groupsAtOnce) {
    const some = groups.slice(at, at + groupsAtOnce).map((group) => readEach(rpc, decision, group))
    results.push(...(await Promise.all(some)).flat())
  }
  return results
}

function contractCallOf(question: StateQuestion): Call3 | undefined {
  if ('call' in question) return { target: question.account, allowFailure: true, callData: question.call }
  if ('authorization' in question) {
    const { token: target, account, authorization } = question
    return { target, allowFailure: true, callData: encodeAuthorizationState(account, authorization) }
  }
  if ('count' in question || question.asset === 'coin') return undefined
  return { target: question.asset, allowFailure: true, callData: encodeBalanceOf(question.account) }
}

function accountCallOf(question: StateQuestion, { at }: Decision): RpcCall {
  const method = 'count' in question ? 'eth_getTransactionCount' : 'eth_getBalance'
  return { method, params: [question.account, at] }
}

function wordOf({ success, returnData }: Call3Result): bigint | undefined {
  if (!success) return undefined
  try {
    return decodeUint256(returnData)
  } catch (error) {
    if (error instanceof AbiMalformed) return undefined
    throw error
  }
}
