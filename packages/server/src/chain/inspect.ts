import {
  type Call3,
  type Call3Result,
  decodeAggregate3,
  decodeBool,
  decodeRevertReason,
  decodeUint256,
  encodeAggregate3,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeTransferWithAuthorization,
  isHex,
  multicall3Address,
} from '@purser/protocol'
import { gather } from '../platform/db/gather.ts'
import { fail } from './errors.ts'
import type { AuthorizationFacts, AuthorizationProbe } from './port.ts'
import type { Rpc, RpcAnswer, RpcCall } from './rpc.ts'

/** Gas for one probe that runs a stranger's code, and for each that does not. */
const untrustedGas = 3_000_000
const trustedGas = 200_000

/**
 * Looks at authorisations on chain, those of concurrent requests in one call: Multicall3 reads every balance and nonce
 * first and then tries every transfer, so that no trial changes what another probe reads. Two of one payer and token, and
 * probes that run a stranger's code, get a call of their own in the same HTTP request: neighbours cannot spoil each other.
 */
export function createInspect(rpc: Rpc): (probe: AuthorizationProbe) => Promise<AuthorizationFacts> {
  return gather<AuthorizationProbe, AuthorizationFacts>({ itemsMax: 64, roundsMax: 2 }, async (probes) => {
    const groups = groupProbes(probes)
    const answers = await rpc.batch(groups.map(callOf))
    const facts = new Map<AuthorizationProbe, AuthorizationFacts>()
    const failed: AuthorizationProbe[] = []
    groups.forEach((group, index) => {
      const read = readGroup(group, answers[index])
      if (read === undefined) failed.push(...group)
      else group.forEach((probe, position) => setIfThere(facts, probe, read[position]))
    })
    if (failed.length > 0) await inspectAlone(rpc, failed, facts)
    return probes.map((probe) => facts.get(probe) ?? unavailable())
  })
}

/** A second try for groups that gave no usable answer, each probe by itself, so that one bad probe fails alone. */
async function inspectAlone(rpc: Rpc, probes: readonly AuthorizationProbe[], facts: Map<AuthorizationProbe, AuthorizationFacts>): Promise<void> {
  const answers = await rpc.batch(probes.map((probe) => callOf([probe])))
  probes.forEach((probe, index) => {
    const read = readGroup([probe], answers[index])
    if (read !== undefined) setIfThere(facts, probe, read[0])
    else if (probe.untrusted) facts.set(probe, { balance: 0n, nonceUsed: false, simulation: { ok: false, reason: null } })
  })
  if (probes.some((probe) => !facts.has(probe))) unavailable()
}

function unavailable(): never {
  throw fail('chain-unavailable', {}, new Error('the node gave no usable answer to a multicall'))
}

function setIfThere<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value !== undefined) map.set(key, value)
}

function groupProbes(probes: readonly AuthorizationProbe[]): AuthorizationProbe[][] {
  const groups: { readonly members: AuthorizationProbe[]; readonly payers: Set<string> }[] = []
  const alone: AuthorizationProbe[][] = []
  for (const probe of probes) {
    if (probe.untrusted) {
      alone.push([probe])
      continue
    }
    const payer = `${probe.token}/${probe.authorization.from}`
    const group = groups.find(({ payers }) => !payers.has(payer))
    if (group === undefined) groups.push({ members: [probe], payers: new Set([payer]) })
    else {
      group.members.push(probe)
      group.payers.add(payer)
    }
  }
  return [...groups.map(({ members }) => members), ...alone]
}

function callOf(group: readonly AuthorizationProbe[]): RpcCall {
  const untrusted = group.some((probe) => probe.untrusted)
  const gas = untrusted ? untrustedGas : trustedGas * group.length
  const data = encodeAggregate3([...group.flatMap(readsOf), ...group.flatMap(trialsOf)])
  return { method: 'eth_call', params: [{ to: multicall3Address, data, gas: `0x${gas.toString(16)}` }, 'latest'] }
}

function readsOf(probe: AuthorizationProbe): Call3[] {
  const { from, nonce } = probe.authorization
  return [
    { target: probe.token, allowFailure: true, callData: encodeBalanceOf(from) },
    { target: probe.token, allowFailure: true, callData: encodeAuthorizationState(from, nonce) },
  ]
}

function trialsOf(probe: AuthorizationProbe): Call3[] {
  const trial: Call3 = {
    target: probe.token,
    allowFailure: true,
    callData: encodeTransferWithAuthorization(probe.authorization, probe.signature),
  }
  if (probe.deployment === undefined) return [trial]
  return [{ target: probe.deployment.factory, allowFailure: true, callData: probe.deployment.factoryCalldata }, trial]
}

/** The facts of a group, or undefined when the answer is none that the calls can have. */
function readGroup(group: readonly AuthorizationProbe[], answer: RpcAnswer | undefined): AuthorizationFacts[] | undefined {
  if (answer?.ok !== true || typeof answer.result !== 'string' || !isHex(answer.result)) return undefined
  const trialCounts = group.map((probe) => trialsOf(probe).length)
  const count = group.length * 2 + trialCounts.reduce((sum, trials) => sum + trials, 0)
  try {
    const results = decodeAggregate3(answer.result, count)
    let at = group.length * 2
    return group.map((_, index) => {
      const trials = results.slice(at, at + (trialCounts[index] ?? 0))
      at += trials.length
      return factsOf(results[index * 2], results[index * 2 + 1], trials)
    })
  } catch {
    return undefined
  }
}

function factsOf(
  balance: Call3Result | undefined,
  used: Call3Result | undefined,
  trials: readonly Call3Result[],
): AuthorizationFacts {
  if (balance?.success !== true || used?.success !== true) throw new Error('the token does not answer as an EIP-3009 token does')
  const trial = trials.at(-1)
  if (trial === undefined) throw new Error('the transfer was not tried')
  return {
    balance: decodeUint256(balance.returnData),
    nonceUsed: decodeBool(used.returnData),
    simulation: trial.success ? { ok: true } : { ok: false, reason: decodeRevertReason(trial.returnData) ?? null },
  }
}
