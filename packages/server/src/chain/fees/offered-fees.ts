import type { Network } from '@purser/protocol'
import { fail } from '../errors.ts'
import type { OfferedFees } from '../port.ts'
import { collectMost, electorateOf } from '../rpc/acceptance.ts'
import type { NodeState } from '../rpc/nodes.ts'
import { readHead, readQuantity, resultOf } from '../rpc/read.ts'
import type { NodeRpc, Rpc, RpcCall, RpcResponse, Voter } from '../rpc/rpc.ts'
import { dataGasOf, firstFees, l1FeeCall, larger, readL1Fee, takesDataGas } from './fees.ts'

/** The factor by which reports of fewer nodes may exceed the fees of the last majority. */
const minorityRaiseMax = 2n

/** Fees that nodes report now, in wei: per unit of gas, and per 256 bytes for L1. */
interface Fees {
  readonly baseFee: bigint
  readonly tip: bigint
  readonly l1Fee: bigint
}

const parts = ['baseFee', 'tip', 'l1Fee'] as const

/**
 * Creates a function that returns the fees from the reports of the healthy nodes: the median of each part, the lower one of two. So one node neither drains
 * an account nor makes everything too expensive. Where nodes are missing and the others contradict each other, each part is at least half of its last sound
 * value, because one of them may lie. When fewer nodes than a majority report, each part is at most twice what the last majority reported.
 * If no majority has reported since the process started, the few that do suffice, within the network's `gasFees`.
 */
export function createOfferedFees(
  { voters, wait }: Pick<NodeRpc, 'voters' | 'wait'>,
  network: Network,
): () => Promise<OfferedFees> {
  let ofMajority: Fees | undefined
  const sound: { -readonly [Part in keyof Fees]?: bigint } = {}
  const { needed } = electorateOf(voters)
  const learn = (reports: readonly Fees[]): void => {
    for (const part of parts) {
      const values = reports.map((fees) => fees[part])
      if (isSound(values, { needed, all: voters.length })) sound[part] = medianOf(values)
    }
  }
  return async () => {
    const isFirst = sound.baseFee === undefined
    const { reports, isMajority } = await reportedFees({ voters, wait }, { network, isFirst, learn })
    if (reports.length === 0) throw fail('chain-unavailable', {}, new Error('no node returned a gas price'))
    const reported = combine(reports, (values, part) =>
      isSound(values, { needed, all: voters.length })
        ? medianOf(values)
        : larger(medianOf(values), (sound[part] ?? 0n) / 2n),
    )
    if (isMajority) ofMajority = reported
    const { baseFee, tip, l1Fee } = ofMajority === undefined ? reported : bounded(reported, ofMajority)
    const offered = { ...firstFees(baseFee, tip, network.gasFees), baseFee }
    if (!takesDataGas(network)) return { ...offered, l1Fee, dataGas: 0n }
    const dataGas = dataGasOf(l1Fee, baseFee)
    return { ...offered, l1Fee: dataGas * offered.maxFee, dataGas }
  }
}

/** Whether the median is near a value that a correct node reports, if a minority of all nodes lies. */
function isSound(
  values: readonly bigint[],
  { needed, all }: { readonly needed: number; readonly all: number },
): boolean {
  return values.length >= needed && (areAlike(values) || (all > 2 && values.length === all))
}

interface FeeQuery {
  readonly network: Network
  /** No sound reading is known: reports of a majority suffice only if they are alike. */
  readonly isFirst: boolean
  /** Called with the reports once each node has responded or failed, also after the result. */
  readonly learn: (reports: readonly Fees[]) => void
}

interface Reported {
  readonly reports: readonly Fees[]
  readonly isMajority: boolean
}

/**
 * Queries the healthy nodes at once, and where they are no majority also those that are behind: of two nodes, one that invents blocks makes the other
 * count as behind. Those that answer suffice, and one that answers late delays the others little.
 */
async function reportedFees(
  { voters, wait }: Pick<NodeRpc, 'voters' | 'wait'>,
  { network, isFirst, learn }: FeeQuery,
): Promise<Reported> {
  const reports: Fees[] = []
  const inState = (...states: readonly NodeState[]) => voters.filter(({ node: { state } }) => states.includes(state))
  const [healthy, answering] = [inState('up', 'unchecked'), inState('up', 'unchecked', 'behind')]
  const { voters: electors, needed } = electorateOf(voters)
  const queried = healthy.length >= needed ? healthy : answering.length > 0 ? answering : electors
  let open = queried.length
  const query = async ({ rpc }: Voter): Promise<number> => {
    try {
      return reports.push(await feesAt(rpc, network))
    } finally {
      open -= 1
      if (open === 0) learn(reports)
    }
  }
  const suffices = (): boolean =>
    reports.length >= needed && (!isFirst || areAlike(reports.map(({ baseFee }) => baseFee)))
  await collectMost(queried, { query, suffices, wait })
  return { reports, isMajority: reports.length >= needed }
}

/** Whether no value is more than twice another. */
function areAlike(values: readonly bigint[]): boolean {
  return values.every((one) => values.every((other) => one <= other * 2n))
}

function bounded(reported: Fees, ofMajority: Fees): Fees {
  return combine([reported, ofMajority], ([now = 0n, before = 0n]) => {
    const most = before * minorityRaiseMax
    return now < most ? now : most
  })
}

function combine(all: readonly Fees[], choose: (values: readonly bigint[], part: keyof Fees) => bigint): Fees {
  const chosen = (part: keyof Fees) =>
    choose(
      all.map((fees) => fees[part]),
      part,
    )
  return { baseFee: chosen('baseFee'), tip: chosen('tip'), l1Fee: chosen('l1Fee') }
}

/** The median; of an even number, the lower one of the two in the middle. */
export function medianOf(values: readonly bigint[]): bigint {
  const sorted = values.toSorted((left, right) => (left < right ? -1 : Number(left > right)))
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0n
}

/**
 * Reads base fee, L1 fee and tip in one request. Requests the tip separately when the batch fails, because some nodes do not support the method.
 */
async function feesAt(rpc: Rpc, network: Network): Promise<Fees> {
  const l1Call = l1FeeCall(network)
  const calls = [
    { method: 'eth_getBlockByNumber', params: ['latest', false] },
    ...(l1Call === undefined ? [] : [l1Call]),
  ]
  // A node without the tip's method may refuse the whole batch; below the others are read without it.
  const combined = await rpc.batch([...calls, tipCall]).catch(() => undefined)
  const [block, ...rest] = combined ?? (await rpc.batch(calls))
  const l1Fee = l1Call === undefined ? 0n : readL1Fee(network, resultOf(rest[0]))
  const tip = combined === undefined ? await suggestedTip(rpc) : tipOf(rest.at(-1))
  return { baseFee: readHead(resultOf(block)).baseFee, tip: tip ?? 0n, l1Fee }
}

const tipCall: RpcCall = { method: 'eth_maxPriorityFeePerGas', params: [] }

/** The priority fee that a node suggests, in wei. Undefined when it does not support the method. */
export function suggestedTip(rpc: Rpc): Promise<bigint | undefined> {
  return rpc.batch([tipCall]).then(
    ([response]) => tipOf(response),
    () => undefined,
  )
}

function tipOf(response: RpcResponse | undefined): bigint | undefined {
  try {
    return readQuantity(resultOf(response), 'priority fee')
  } catch {
    return undefined
  }
}
