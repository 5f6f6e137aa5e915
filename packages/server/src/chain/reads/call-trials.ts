import { type Address, decodeRevertReason, type Hex, hexToBytes, isHex, type Network } from '@purser/protocol'
import { fail } from '../errors.ts'
import type { CallTrial, LaneCall, TriedCall } from '../port.ts'
import { collect, type Electorate } from '../rpc/acceptance.ts'
import { callFaultOf } from '../rpc/call-fault.ts'
import { invalidResponse, readHex, readQuantity } from '../rpc/read.ts'
import { isRecord, type Rpc, type RpcCall, type RpcResponse, type Voter } from '../rpc/rpc.ts'

/**
 * Tries a call at all nodes at once, as of their own latest blocks. It is refused if a majority refuses it. It succeeds if a majority takes it and
 * agrees on its gas: the highest of their amounts counts, if the gas limit for the lowest covers it. So one of three nodes can neither end a transfer,
 * nor give it too little gas, nor make its wallet too poor for it. Throws `chain-unavailable` while there is no majority; nobody is suspended, because
 * nodes may differ by a block.
 */
export async function requestTrial(
  network: Network,
  { voters, needed }: Electorate,
  query: (voter: Voter) => Promise<NodeTrial>,
): Promise<CallTrial> {
  const trials: NodeTrial[] = []
  const decided = (): CallTrial | undefined => {
    const refused = trials.flatMap((trial) => (trial.ok ? [] : [trial]))
    if (refused.length >= needed) return refused.find(({ reason }) => reason !== null) ?? refused[0]
    const gas = agreedGas(
      network,
      trials.flatMap((trial) => (trial.ok ? [trial.gas] : [])),
      needed,
    )
    return gas === undefined ? undefined : { ok: true, gasLimit: gasLimitOf(network, gas) }
  }
  await collect(voters, query, (trial) => {
    trials.push(trial)
    return decided() !== undefined
  })
  const trial = decided()
  if (trial === undefined)
    throw fail('chain-unavailable', {}, new Error('the nodes do not agree whether a call succeeds, or on its gas'))
  return trial
}

/** The highest gas of as many nodes as are needed, all within the gas limit for the lowest of them. */
function agreedGas(network: Network, amounts: readonly bigint[], needed: number): bigint | undefined {
  const sorted = amounts.toSorted((one, other) => (one < other ? -1 : one > other ? 1 : 0))
  const groups = sorted.map((lowest) => sorted.filter((gas) => gas >= lowest && gas <= gasLimitOf(network, lowest)))
  return groups.findLast(({ length }) => length >= needed)?.at(-1)
}

/** Gas of a plain payment of coin to an account without code, and the least of any transaction. */
const plainGas = 21_000n

/** A call at one node, with the gas that it used. */
export type NodeTrial = { readonly ok: true; readonly gas: bigint } | Extract<CallTrial, { ok: false }>

/** Gas of a write that turns zero into another value: 22,100 (EIP-2929), and 250,000 on Tempo. */
function firstWriteGas({ nativeCoin }: Network): bigint {
  return nativeCoin === null ? 260_000n : 25_000n
}

/**
 * Gas limit for a call that used this much gas when it was tried. It may execute on another state, so it gets a fifth more, and at least one write of
 * a value that was zero, since a recipient may empty its balance in between. A plain payment of coin gets exactly the gas that it used.
 */
function gasLimitOf(network: Network, gas: bigint): bigint {
  if (gas === plainGas) return gas
  const fifthMore = (gas * 6n) / 5n
  const withWrite = gas + firstWriteGas(network)
  return fifthMore > withWrite ? fifthMore : withWrite
}

/** The gas limit of a transaction (EIP-7825), less the fifth that is added to estimates. */
const gasMax = 13_900_000n

/** The minimum gas that a transaction needs for its data (EIP-7623). */
function gasMinOf(data: Hex): bigint {
  const bytes = hexToBytes(data)
  const zeros = bytes.filter((byte) => byte === 0).length
  return plainGas + 10n * BigInt(zeros + 4 * (bytes.length - zeros))
}

/**
 * Tries each call separately on the latest block (`eth_estimateGas`). No gas price is given, so that the trial also works for an account that could
 * not pay for it; costs are checked elsewhere. A call for which the node returns another error, or a gas amount that no transaction can have (a
 * transaction signed with it would block its account forever), is tried once more by itself, and then gets a `chain-unavailable` error.
 */
export async function tryEach(rpc: Rpc, calls: readonly TriedCall[]): Promise<(NodeTrial | Error)[]> {
  const responses = await rpc.batch(calls.map(estimateCall))
  return Promise.all(
    calls.map(async (call, index) => {
      const trial = trialOf(call, responses[index])
      return trial instanceof Error ? rpc.onOneNode((one) => tryOne(one, call)).catch(errorOf) : trial
    }),
  )
}

/** Tries one call, as `tryCall` does, at the nodes of this `Rpc` only. Throws `chain-unavailable` without a usable result. */
export async function tryOne(rpc: Rpc, call: TriedCall): Promise<NodeTrial> {
  const [response] = await rpc.batch([estimateCall(call)])
  const trial = trialOf(call, response)
  if (trial instanceof Error) throw trial
  return trial
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function estimateCall({ from, to, data, value }: TriedCall): RpcCall {
  return { method: 'eth_estimateGas', params: [{ from, to, data, value: `0x${value.toString(16)}` }, 'latest'] }
}

function trialOf({ data }: TriedCall, response: RpcResponse | undefined): NodeTrial | Error {
  if (response?.ok === false && callFaultOf(response) !== undefined)
    return { ok: false, reason: reasonOf(response.data) }
  if (response?.ok !== true) return fail('chain-unavailable', {}, new Error(response?.message ?? 'no answer'))
  try {
    const gas = readQuantity(response.result, 'gas')
    if (gas <= gasMax && gas >= gasMinOf(data)) return { ok: true, gas }
    return fail('chain-unavailable', {}, new Error(`no call takes ${gas} gas`))
  } catch (error) {
    return fail('chain-unavailable', {}, error)
  }
}

function reasonOf(data: string | undefined): string | null {
  return data !== undefined && isHex(data) ? (decodeRevertReason(data) ?? null) : null
}

/**
 * Runs calls in sequence on the latest block (`eth_simulateV1`), each on the state that the one before left, without a gas price. The returned gas
 * is the sum of what each used as a separate transaction plus a quarter, since refunds (EIP-3529: at most a fifth) are paid only after the gas was
 * available. Throws `chain-unavailable` when the node does not return the outcome of each call.
 */
export async function tryCalls(rpc: Rpc, from: Address, calls: readonly LaneCall[]): Promise<NodeTrial> {
  const simulated = calls.map(({ to, data, value }) => ({ from, to, data, value: `0x${value.toString(16)}` }))
  const result = await rpc.result('eth_simulateV1', [
    { blockStateCalls: [{ calls: simulated }], validation: false },
    'latest',
  ])
  const outcomes = outcomesIn(result)
  if (outcomes.length !== calls.length) throw invalidResponse(outcomesLack)
  const refused = outcomes.find(({ isOk }) => !isOk)
  if (refused !== undefined) return { ok: false, reason: decodeRevertReason(refused.returned) ?? null }
  return { ok: true, gas: (outcomes.reduce((sum, { gasUsed }) => sum + gasUsed, 0n) * 5n) / 4n }
}

interface CallOutcome {
  readonly isOk: boolean
  readonly gasUsed: bigint
  readonly returned: Hex
}

function outcomesIn(result: unknown): CallOutcome[] {
  const block: unknown = Array.isArray(result) ? result[0] : undefined
  if (!isRecord(block) || !Array.isArray(block.calls)) throw invalidResponse(outcomesLack)
  return block.calls.map((call: unknown) => {
    if (!isRecord(call)) throw invalidResponse(outcomesLack)
    const gasUsed = readQuantity(call.gasUsed, 'gas')
    return { isOk: call.status === '0x1', gasUsed, returned: readHex(call.returnData, 'call result') }
  })
}

const outcomesLack = 'eth_simulateV1: the node did not return the outcome of each call'
