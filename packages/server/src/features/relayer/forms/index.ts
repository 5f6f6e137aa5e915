import { type Address, type Call3, encodeAggregate3, type Hex, hexToBytes, multicall3Address } from '@purser/protocol'
import type { Chain, NonceState, Receipt } from '../../../chain/port.ts'
import type { Finality } from '../../../chain/rpc/port.ts'
import type { Queryable } from '../../../platform/db/db.ts'
import { claimLogIndex } from '../permit-log-store.ts'
import type { RelayFault, RelayPayload, StoredPermit2 } from '../port.ts'
import { authorizationForm } from './authorization.ts'
import { encodeBoundedCalls, type Trial, type Use, type UseOptions } from './form.ts'
import { permit2Form } from './permit2.ts'

const gasOfTransaction = 60_000n
/**
 * Part of the gas grant that a shared transaction uses in addition to the call: for its data, and for the code that
 * makes the call.
 */
const gasAroundCall = 8_000n

/** Gas that the payload's form grants. */
export function gasOf(payload: RelayPayload): bigint {
  return payload.kind === 'permit2' ? permit2Form.gas(payload) : authorizationForm.gas(payload)
}

export type FaultKind = 'expired' | 'used' | 'notCarried'

export function faultOf(payload: RelayPayload, kind: FaultKind): RelayFault {
  return payload.kind === 'permit2' ? permit2Form[kind](payload) : authorizationForm[kind](payload)
}

/**
 * Returns how a spent nonce was used. If a log of a receipt can prove several permits, it counts for the first payment
 * that finds it.
 */
export async function findUse(
  { db, chain }: { readonly db: Queryable; readonly chain: Chain },
  payload: RelayPayload,
  search: UseOptions,
): Promise<Use> {
  if (payload.kind !== 'permit2') return authorizationForm.find(chain, payload, search)
  const use = await permit2Form.find(chain, payload, search)
  if (use.outcome !== 'settled' || use.logIndexes === undefined) return use
  const { transactionHash, logIndexes } = use
  const isProven = await claimLogIndex(db, { network: chain.network.name, transactionHash, logIndexes }, payload)
  return isProven ? use : { outcome: 'lost', fault: permit2Form.used(payload), isLogged: true }
}

export interface RelayCall {
  /** Null creates a contract: its creation code makes the calls. */
  readonly to: Address | null
  readonly data: Hex
  readonly gasLimit: bigint
}

/**
 * Returns the one transaction that carries these payloads. Several are called by creation code that gives each its own
 * gas and continues if one fails. The gas limit is a sum of fixed grants and not an estimate, because an estimate of
 * calls that may fail finds the gas at which they fail.
 */
export function callOf(payloads: readonly RelayPayload[]): RelayCall {
  const [only] = payloads
  if (payloads.length === 1 && only !== undefined) return loneCallOf(only)
  const calls = payloads.flatMap((payload) =>
    callsOf(payload).map((call) => ({ ...call, gas: gasOf(payload) - gasAroundCall })),
  )
  return { to: null, data: encodeBoundedCalls(calls), gasLimit: gasLimitOf(payloads) }
}

/** A single call goes straight to its contract. An account's deployment may fail, since it may already exist; its transfer may not. */
function loneCallOf(payload: RelayPayload): RelayCall & { readonly to: Address } {
  const calls = callsOf(payload)
  const gasLimit = gasLimitOf([payload])
  const only = calls.length === 1 ? calls[0] : undefined
  if (only !== undefined) return { to: only.target, data: only.callData, gasLimit }
  const own = calls.map((call, index) => ({ ...call, allowFailure: index === 0 }))
  return { to: multicall3Address, data: encodeAggregate3(own), gasLimit }
}

function gasLimitOf(payloads: readonly RelayPayload[]): bigint {
  return payloads.reduce((gas, payload) => gas + gasOf(payload), gasOfTransaction)
}

/** Least gas limit of a transaction with this data (EIP-7623): 10 for each zero byte and 40 for each other one. */
function floorOf(data: Hex): bigint {
  const bytes = hexToBytes(data)
  return BigInt(bytes.reduce((gas, byte) => gas + (byte === 0 ? 10 : 40), 21_000))
}

function callsOf(payload: RelayPayload): readonly Call3[] {
  return payload.kind === 'permit2' ? permit2Form.calls(payload) : authorizationForm.calls(payload)
}

/** Returns, for payloads that one transaction carries, whether its receipt shows that their money moved. */
export function movedIn({ status, logs: all }: Pick<Receipt, 'status' | 'logs'>): (payload: RelayPayload) => boolean {
  const logs = status === 'success' ? all : []
  const byAuthorization = authorizationForm.proof(logs)
  const byPermit2 = permit2Form.proof(logs)
  return (payload) => (payload.kind === 'permit2' ? byPermit2(payload) : byAuthorization(payload))
}

/** Returns the quorum's report of each nonce at the payment depth or this finality, in the order of the payloads; at most 500 at once. */
export async function nonceStates(
  chain: Chain,
  payloads: readonly RelayPayload[],
  finality?: Finality,
): Promise<readonly NonceState[]> {
  const permits = payloads.filter((payload): payload is StoredPermit2 => payload.kind === 'permit2')
  const authorizations = payloads.filter((payload) => payload.kind !== 'permit2')
  const [ofPermits, ofAuthorizations] = await Promise.all([
    permits.length === 0 ? [] : permit2Form.states(chain, permits, finality),
    authorizations.length === 0 ? [] : authorizationForm.states(chain, authorizations, finality),
  ])
  const [nextPermit, nextAuthorization] = [ofPermits.values(), ofAuthorizations.values()]
  return payloads.map(({ kind }) => (kind === 'permit2' ? nextPermit : nextAuthorization).next().value ?? 'undecided')
}

/**
 * Returns whether the chain would accept a payload that is sent alone. It is simulated first as a call without a gas price, which
 * gives the reason of a failure, and then as the settler would send it: with a real gas price, and for two block builders and
 * times, since untrusted code may behave well for only one of them.
 */
export async function tryAlone(chain: Chain, payload: RelayPayload, settler: Address): Promise<Trial> {
  const trial = await (payload.kind === 'permit2'
    ? permit2Form.judge(chain, payload, settler)
    : authorizationForm.judge(chain, payload, settler))
  if (trial !== 'taken') return trial
  const { to, data, gasLimit } = loneCallOf(payload)
  if (gasLimit < floorOf(data)) return faultOf(payload, 'notCarried')
  const isTaken = await chain.trySending({ from: settler, to, data, gasLimit })
  return isTaken ? 'taken' : faultOf(payload, 'notCarried')
}
