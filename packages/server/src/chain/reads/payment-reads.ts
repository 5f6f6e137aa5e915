import {
  AbiMalformed,
  type Call3,
  type Call3Result,
  decodeAggregate3,
  decodeBool,
  decodeRevertReason,
  decodeUint256,
  encodeAggregate3,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeNonceBitmap,
  encodeTransferWithAuthorization,
  type Hex,
  isHex,
  isNonceSpent,
  multicall3Address,
  permit2Address,
} from '@purser/protocol'
import { batch } from '../../platform/db/batch.ts'
import { fail } from '../errors.ts'
import type { Head } from '../facts.ts'
import type { AuthorizationFacts, AuthorizationProbe, Chain, PayerFunds, PayerQuestion, Permit2Facts } from '../port.ts'
import { electorateOf, requestAcceptance } from '../rpc/acceptance.ts'
import { callFaultOf } from '../rpc/call-fault.ts'
import { readHex } from '../rpc/read.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse, Voter } from '../rpc/rpc.ts'
import { inspectPermit2, transactionGas, wouldSettle } from './permit2.ts'
import { trySending } from './try-sending.ts'

type PaymentReads = Pick<Chain, 'inspectAuthorization' | 'inspectPermit2' | 'payerFunds' | 'trySending'>

/**
 * The reads that decide whether a payment is accepted: a majority of the configured nodes must accept it, since a payer who controls one of them
 * could invent a balance or a signature, and the settler would pay for transactions that revert. A single node decides alone.
 */
export function createPaymentReads(rpc: Rpc & NodeRpc, headOf: (rpc: Rpc) => Promise<Head>): PaymentReads {
  const alone = readsOfNode(rpc, headOf)
  if (rpc.voters.length < 2) return alone
  const inspects = new Map(rpc.voters.map((voter) => [voter, createInspect(voter.rpc)]))
  return {
    async inspectAuthorization(probe) {
      const isAccepting = ({ simulation, nonceUsed, balance }: AuthorizationFacts): boolean =>
        simulation.ok && !nonceUsed && balance >= probe.authorization.value
      const query = (voter: Voter) => (inspects.get(voter) ?? alone.inspectAuthorization)(probe)
      const found = await requestAcceptance(electorateOf(rpc.voters), query, isAccepting, probe.refusal)
      return found.isAccepted ? lowestBalanceOf(found.responses) : found.response
    },
    async inspectPermit2(probe) {
      const query = ({ rpc: one }: Voter) => inspectPermit2(one, probe)
      const isAccepting = (facts: Permit2Facts): boolean => wouldSettle(facts, probe.settlement.amount)
      const found = await requestAcceptance(electorateOf(rpc.voters), query, isAccepting, probe.refusal)
      return found.isAccepted ? lowestBalanceOf(found.responses) : found.response
    },
    async payerFunds(question) {
      const electorate = electorateOf(rpc.voters)
      const found = await requestAcceptance(
        electorate,
        ({ rpc: one }) => readPayerFunds(one, question),
        () => true,
      )
      return found.isAccepted ? agreedOf(question, found.responses, electorate.needed) : found.response
    },
    async trySending(call) {
      const query = async ({ rpc: one }: Voter) => trySending(one, call, await headOf(one))
      return (await requestAcceptance(electorateOf(rpc.voters), query, (isTaken) => isTaken, 'final')).isAccepted
    },
  }
}

/** The reads of a node that decides alone. */
function readsOfNode(rpc: Rpc, headOf: (rpc: Rpc) => Promise<Head>): PaymentReads {
  return {
    inspectAuthorization: createInspect(rpc),
    inspectPermit2: (probe) => inspectPermit2(rpc, probe),
    payerFunds: (question) => readPayerFunds(rpc, question),
    trySending: async (call) => trySending(rpc, call, await headOf(rpc)),
  }
}

/** The response with the lowest balance, since a majority contains at least one honest node. */
function lowestBalanceOf<T extends { readonly balance: bigint }>(responses: readonly T[]): T {
  return responses.reduce((lowest, response) => (response.balance < lowest.balance ? response : lowest))
}

/** The lowest balance, and the nonces that at least `needed` nodes report as spent, so that a single node cannot invent one. */
function agreedOf({ nonces, permits }: PayerQuestion, responses: readonly PayerFunds[], needed: number): PayerFunds {
  const isAgreed = (spent: (funds: PayerFunds) => boolean): boolean => responses.filter(spent).length >= needed
  return {
    rawBalance: responses.reduce(
      (lowest, { rawBalance }) => (rawBalance < lowest ? rawBalance : lowest),
      responses[0]?.rawBalance ?? 0n,
    ),
    spentNonces: nonces.filter((nonce) => isAgreed(({ spentNonces }) => spentNonces.includes(nonce))),
    spentPermits: permits.filter((nonce) => isAgreed(({ spentPermits }) => spentPermits.includes(nonce))),
  }
}

/** Gas for each probe of a shared call, including its two reads. */
const sharedGas = 200_000
/** Gas limit of a separate trial. It equals what settlement allows; otherwise a wallet could pass here and run out of gas there. */
const singleGas = { ecdsa: 160_000, bytes: 460_000 } as const
const deploymentGas = 1_200_000

/**
 * Inspects authorizations on chain; concurrent probes share one HTTP request. Multicall3 first reads every balance and nonce and then tries every
 * transfer, so that no trial changes what another probe reads. Two probes of one payer go into different calls. A success in a shared call is
 * final. A failure that the reads do not explain is retried separately and then as of the pending block: another trial may have used up the gas,
 * and on an idle chain the latest block lags behind the clock. Probes that run untrusted code never share a call.
 */
function createInspect(rpc: Rpc): (probe: AuthorizationProbe) => Promise<AuthorizationFacts> {
  const inspect = batch<AuthorizationProbe, AuthorizationFacts | Error>(
    { itemsMax: 64, batchesMax: 4 },
    async (probes) => {
      const shared = await inspectShared(
        rpc,
        probes.filter((probe) => !probe.untrusted),
      )
      return Promise.all(probes.map((probe) => conclude(rpc, probe, shared.get(probe))))
    },
  )
  return async (probe) => {
    const facts = await inspect(probe)
    if (facts instanceof Error) throw facts
    return facts
  }
}

async function conclude(
  rpc: Rpc,
  probe: AuthorizationProbe,
  shared: AuthorizationFacts | undefined,
): Promise<AuthorizationFacts | Error> {
  if (shared !== undefined && isConclusive(probe, shared)) return shared
  const first = shared ?? (await inspectAlone(rpc, probe, 'latest'))
  if (first instanceof Error || isConclusive(probe, first)) return first
  const second = await inspectAlone(rpc, probe, 'pending')
  if (!(second instanceof Error)) return second
  return first.simulation.ok || first.simulation.reason !== null ? first : second
}

function isConclusive(probe: AuthorizationProbe, { simulation, nonceUsed, balance }: AuthorizationFacts): boolean {
  return simulation.ok || nonceUsed || balance < probe.authorization.value
}

/** The results of the probes whose group returned a usable result. Throws when the node does not respond at all. */
async function inspectShared(
  rpc: Rpc,
  probes: readonly AuthorizationProbe[],
): Promise<Map<AuthorizationProbe, AuthorizationFacts>> {
  const groups = groupProbes(probes)
  const responses = await rpc.batch(groups.map(sharedCall))
  const facts = new Map<AuthorizationProbe, AuthorizationFacts>()
  groups.forEach((group, index) => {
    const read = readShared(group, responses[index])
    group.forEach((probe, position) => {
      const own = read?.[position]
      if (own !== undefined) facts.set(probe, own)
    })
  })
  return facts
}

/** The fewest groups in which each pair of payer and token occurs at most once. */
function groupProbes(probes: readonly AuthorizationProbe[]): AuthorizationProbe[][] {
  const groups: AuthorizationProbe[][] = []
  const seen = new Map<string, number>()
  for (const probe of probes) {
    const payer = `${probe.token}/${probe.authorization.from}`.toLowerCase()
    const index = seen.get(payer) ?? 0
    seen.set(payer, index + 1)
    const group = groups[index]
    if (group === undefined) groups.push([probe])
    else group.push(probe)
  }
  return groups
}

function sharedCall(group: readonly AuthorizationProbe[]): RpcCall {
  const data = encodeAggregate3([...group.flatMap(readingsOf), ...group.map(trialOf)])
  return ethCall(multicall3Address, data, 'latest', sharedGas * (group.length + 1))
}

function ethCall(to: Hex, data: Hex, block: 'latest' | 'pending', gas: number): RpcCall {
  return { method: 'eth_call', params: [{ to, data, gas: `0x${gas.toString(16)}` }, block] }
}

function readingsOf({ token, authorization }: AuthorizationProbe): [Call3, Call3] {
  const { from, nonce } = authorization
  return [
    { target: token, allowFailure: true, callData: encodeBalanceOf(from) },
    { target: token, allowFailure: true, callData: encodeAuthorizationState(from, nonce) },
  ]
}

function trialOf({ token, authorization, signature }: AuthorizationProbe): Call3 {
  return { target: token, allowFailure: true, callData: encodeTransferWithAuthorization(authorization, signature) }
}

function readShared(
  group: readonly AuthorizationProbe[],
  response: RpcResponse | undefined,
): AuthorizationFacts[] | undefined {
  if (response?.ok !== true || typeof response.result !== 'string' || !isHex(response.result)) return undefined
  try {
    const results = decodeAggregate3(response.result, group.length * 3)
    return group.map((_, index) =>
      factsOf(results[index * 2], results[index * 2 + 1], results[group.length * 2 + index]),
    )
  } catch {
    return undefined
  }
}

function factsOf(
  balance: Call3Result | undefined,
  used: Call3Result | undefined,
  trial: Call3Result | undefined,
): AuthorizationFacts {
  if (balance?.success !== true || used?.success !== true || trial === undefined)
    throw new Error('not an EIP-3009 token')
  return {
    balance: decodeUint256(balance.returnData),
    nonceUsed: decodeBool(used.returnData),
    simulation: simulationOf(trial),
  }
}

function simulationOf({ success, returnData }: Call3Result): AuthorizationFacts['simulation'] {
  return success ? { ok: true } : refusedFor(returnData)
}

function refusedFor(data: Hex | undefined): AuthorizationFacts['simulation'] {
  return { ok: false, reason: data === undefined ? null : (decodeRevertReason(data) ?? null) }
}

/** Runs a probe in its own HTTP request, with each read in its own call, so that untrusted code can only affect its own trial. */
async function inspectAlone(
  rpc: Rpc,
  probe: AuthorizationProbe,
  block: 'latest' | 'pending',
): Promise<AuthorizationFacts | Error> {
  try {
    const [balance, used] = readingsOf(probe).map(({ target, callData }) => ethCall(target, callData, block, sharedGas))
    if (balance === undefined || used === undefined) throw new Error('a probe has two readings')
    const responses = await rpc.batch([balance, used, singleTrial(probe, block)])
    return {
      balance: decodeUint256(resultOf(responses[0])),
      nonceUsed: decodeBool(resultOf(responses[1])),
      simulation: readTrial(probe, responses[2]),
    }
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

function singleTrial(probe: AuthorizationProbe, block: 'latest' | 'pending'): RpcCall {
  const trial = trialOf(probe)
  const deploymentOf = probe.deployment === undefined ? 0 : deploymentGas
  const gas =
    probe.gas === undefined ? singleGas[probe.signature.kind] + deploymentOf : Number(probe.gas) + transactionGas
  if (probe.deployment === undefined) return ethCall(trial.target, trial.callData, block, gas)
  const { factory, factoryCalldata } = probe.deployment
  const data = encodeAggregate3([{ target: factory, allowFailure: true, callData: factoryCalldata }, trial])
  return ethCall(multicall3Address, data, block, gas)
}

function readTrial(probe: AuthorizationProbe, response: RpcResponse | undefined): AuthorizationFacts['simulation'] {
  if (response?.ok === false && callFaultOf(response) !== undefined) return refusedFor(response.data)
  const result = resultOf(response)
  if (probe.deployment === undefined) return { ok: true }
  const trial = decodeAggregate3(result, 2)[1]
  return trial === undefined ? refusedFor(undefined) : simulationOf(trial)
}

function resultOf(response: RpcResponse | undefined): Hex {
  if (response?.ok !== true || typeof response.result !== 'string' || !isHex(response.result))
    throw new Error('the node returned no result for a call')
  return response.result
}

/** Reads everything in one Multicall3 call, or in one request of several calls on a network without Multicall3. */
async function readPayerFunds(rpc: Rpc, { token, account, nonces, permits }: PayerQuestion): Promise<PayerFunds> {
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
  const response = readHex(await rpc.result('eth_call', [{ to: multicall3Address, data }, 'latest']), 'call result')
  if (response !== '0x') {
    try {
      return decodeAggregate3(response, calls.length)
    } catch (error) {
      throw fail('chain-unavailable', {}, error)
    }
  }
  const responses = await rpc.batch(
    calls.map(({ target, callData }) => ({ method: 'eth_call', params: [{ to: target, data: callData }, 'latest'] })),
  )
  return responses.map((one) => ({ success: one.ok, returnData: one.ok ? readHex(one.result, 'call result') : '0x' }))
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
