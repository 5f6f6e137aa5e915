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
import { createFairSemaphore, type FairSemaphore } from '../../platform/fair-semaphore.ts'
import { fail } from '../errors.ts'
import type { AuthorizationId, Finality, NonceState, PermitId, QuorumReads, StateQuestion } from './port.ts'
import type { Decision, Quorum } from './quorum.ts'
import { readHex, readQuantity, resultOf } from './read.ts'
import type { Rpc, RpcCall } from './rpc.ts'

type StateReads = Pick<QuorumReads, 'authorizationStates' | 'permitStates' | 'stateAt' | 'noncesAt'>

/** Most questions in one multicall, and most multicalls that a node has at once of all reads, which take turns: one read has seven of 16. */
const questionsMax = 500
const groupsAtOnce = 16

/** State reads at one block, confirmed by a majority. */
export function createStates(network: Network, quorum: Quorum): StateReads {
  const payments: Finality = { depth: network.confirmationDepth }
  const slots = new WeakMap<Rpc, FairSemaphore>()
  let reads = 0
  const slotsOf = (rpc: Rpc): FairSemaphore => {
    const own = slots.get(rpc) ?? createFairSemaphore(groupsAtOnce)
    slots.set(rpc, own)
    return own
  }
  const stateAt: StateReads['stateAt'] = async (questions, { finality = payments, atMost } = {}) => {
    const decision = await quorum.decide(finality, atMost)
    if (decision === undefined) throw fail('chain-unavailable', {}, new Error('too few nodes agree on a block'))
    const prepared = preparedOf(questions)
    reads += 1
    const owner = String(reads)
    const ask = (rpc: Rpc) => readState({ rpc, decision, take: () => slotsOf(rpc).take(owner) }, prepared)
    const values = await decision.vote({ count: questions.length, ask })
    return { block: decision.block, newest: decision.newest, values }
  }
  return {
    authorizationStates: (ids, finality = payments) => noncesOf(quorum, ids.map(ofAuthorization), finality),
    permitStates: (ids, finality = payments) => noncesOf(quorum, ids.map(ofPermit), finality),
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

function ofAuthorization({ token, authorizer, nonce, validBefore }: AuthorizationId): Question {
  return {
    call: { target: token, allowFailure: true, callData: encodeAuthorizationState(authorizer, nonce) },
    isUsed: decodeBool,
    isPast: (time) => time >= validBefore,
  }
}

function ofPermit({ owner, nonce, deadline }: PermitId): Question {
  return {
    call: { target: permit2Address, allowFailure: true, callData: encodeNonceBitmap(owner, nonce) },
    isUsed: (data) => isNonceSpent(decodeUint256(data), nonce),
    isPast: (time) => time > deadline,
  }
}

/** The states of nonces in the block that a quorum has decided on. */
async function noncesOf(
  quorum: Quorum,
  questions: readonly Question[],
  finality: Finality,
): Promise<readonly NonceState[]> {
  if (questions.length > questionsMax) throw new RangeError('too many questions for one multicall')
  const decision = questions.length === 0 ? undefined : await quorum.decide(finality)
  if (decision === undefined) return questions.map(() => 'undecided')
  const calls = questions.map(({ call }) => call)
  const data = encodeAggregate3(calls)
  const ask = async (rpc: Rpc) =>
    (await readEach(rpc, decision, { calls, data: () => data })).map((result, index) =>
      voteOf(questions[index], result),
    )
  const votes = await decision.vote({ count: questions.length, ask })
  return questions.map((question, index) => stateOf(votes[index], question, decision.block.timestampSeconds))
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

function stateOf(
  vote: 'used' | 'unused' | undefined,
  { isPast }: Pick<Question, 'isPast'>,
  timestampSeconds: Parameters<Question['isPast']>[0],
): NonceState {
  if (vote !== 'unused') return vote ?? 'undecided'
  return isPast(timestampSeconds) ? 'expired' : 'open'
}

/** Each call's result at the decision block, by multicall, or by separate calls on a network without the multicall contract. */
async function readEach(rpc: Rpc, { at }: Decision, { calls, data }: Group): Promise<readonly Call3Result[]> {
  const response = await rpc.call('eth_call', [{ to: multicall3Address, data: data() }, at])
  const result = readHex(resultOf(response), 'call result')
  if (result === '0x') return readSeparately(rpc, at, calls)
  try {
    return decodeAggregate3(result, calls.length)
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

/** Calls of one multicall. */
interface Group {
  readonly calls: readonly Call3[]
  /** The multicall's data, encoded once for all nodes, when the first of them needs it: a large read does not occupy the process in one piece. */
  readonly data: () => Hex
}

/** Questions of one read, prepared for all nodes. */
interface Prepared {
  readonly questions: readonly StateQuestion[]
  /** In the order of the questions; undefined for one that is no call of a contract. */
  readonly calls: readonly (Call3 | undefined)[]
  readonly groups: readonly Group[]
}

function preparedOf(questions: readonly StateQuestion[]): Prepared {
  const calls = questions.map(contractCallOf)
  const contracts = calls.filter((call) => call !== undefined)
  const groups = Array.from({ length: Math.ceil(contracts.length / questionsMax) }, (_, index) =>
    groupOf(contracts.slice(index * questionsMax, (index + 1) * questionsMax)),
  )
  return { questions, calls, groups }
}

function groupOf(calls: readonly Call3[]): Group {
  let encoded: Hex | undefined
  return {
    calls,
    data: () => {
      encoded ??= encodeAggregate3(calls)
      return encoded
    },
  }
}

/** A node, and its turn to be sent a multicall. */
interface Asking {
  readonly rpc: Rpc
  readonly decision: Decision
  readonly take: () => Promise<() => void>
}

/** Undefined (no vote) for a contract that does not respond. Other questions are not affected. */
async function readState(
  asking: Asking,
  { questions, calls, groups }: Prepared,
): Promise<readonly (bigint | undefined)[]> {
  const { rpc, decision } = asking
  const readAccounts = async () => {
    const own = questions.flatMap((question, index) =>
      calls[index] === undefined ? [accountCallOf(question, decision)] : [],
    )
    const responses = own.length === 0 ? [] : await rpc.batch(own)
    return responses.map((response) => readQuantity(resultOf(response), 'state of an account'))
  }
  const [ofContracts, ofAccounts] = await Promise.all([readInGroups(asking, groups), readAccounts()])
  const [contract, account] = [ofContracts.map(wordOf).values(), ofAccounts.values()]
  return calls.map((call) => (call === undefined ? account : contract).next().value)
}

/**
 * Sends some groups at once: a node has few connections, and the time of each request counts from when it begins to wait for one. No
 * more are sent after one failed.
 */
async function readInGroups({ rpc, decision, take }: Asking, groups: readonly Group[]): Promise<Call3Result[]> {
  const results: (readonly Call3Result[])[] = []
  const left = [...groups.entries()]
  const readSome = async (): Promise<void> => {
    while (left.length > 0) {
      const release = await take()
      try {
        const next = left.shift()
        if (next !== undefined) results[next[0]] = await readEach(rpc, decision, next[1])
      } catch (error) {
        left.length = 0
        throw error
      } finally {
        release()
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(groupsAtOnce, groups.length) }, readSome))
  return results.flat()
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
