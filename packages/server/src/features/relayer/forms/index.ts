import { type Address, type Call3, encodeAggregate3, type Hex, multicall3Address } from '@purser/protocol'
import type { Chain, Log, NonceState } from '../../../chain/port.ts'
import type { RelayPayload, StoredPermit2 } from '../payload.ts'
import type { RelayFault } from '../port.ts'
import { authorizationForm } from './authorization.ts'
import type { Trial, Use } from './form.ts'
import { permit2Form } from './permit2.ts'

const gasOfTransaction = 60_000n

/** Gas that the payload's form grants. */
export function gasOf(payload: RelayPayload): bigint {
  return payload.kind === 'permit2' ? permit2Form.gas(payload) : authorizationForm.gas(payload)
}

export type FaultKind = 'expired' | 'used' | 'notCarried'

export function faultOf(payload: RelayPayload, kind: FaultKind): RelayFault {
  return payload.kind === 'permit2' ? permit2Form[kind](payload) : authorizationForm[kind](payload)
}

export function findUse(chain: Chain, payload: RelayPayload, since: Date): Promise<Use> {
  return payload.kind === 'permit2'
    ? permit2Form.find(chain, payload, since)
    : authorizationForm.find(chain, payload, since)
}

export interface RelayCall {
  readonly to: Address
  readonly data: Hex
  readonly gasLimit: bigint
}

/**
 * Returns the one transaction that carries these payloads. A single call goes straight to its contract; several go through
 * Multicall3, each allowed to fail by itself. The gas limit is a sum of fixed grants and not an estimate, because an estimate of
 * calls that may fail finds the gas at which they fail.
 */
export function callOf(payloads: readonly RelayPayload[]): RelayCall {
  const calls = payloads.flatMap(callsOf)
  const gasLimit = payloads.reduce((gas, payload) => gas + gasOf(payload), gasOfTransaction)
  const only = calls.length === 1 ? calls[0] : undefined
  if (only !== undefined) return { to: only.target, data: only.callData, gasLimit }
  // Sent alone, an account's deployment may fail, since the account may already exist, and its transfer may not.
  const own = payloads.length > 1 ? calls : calls.map((call, index) => ({ ...call, allowFailure: index === 0 }))
  return { to: multicall3Address, data: encodeAggregate3(own), gasLimit }
}

function callsOf(payload: RelayPayload): readonly Call3[] {
  return payload.kind === 'permit2' ? permit2Form.calls(payload) : authorizationForm.calls(payload)
}

/** Returns, for payloads that one transaction carries, whether its logs show that their money moved. */
export function movedIn(logs: readonly Log[]): (payload: RelayPayload) => boolean {
  const byAuthorization = authorizationForm.proof(logs)
  const byPermit2 = permit2Form.proof(logs)
  return (payload) => (payload.kind === 'permit2' ? byPermit2(payload) : byAuthorization(payload))
}

/** Returns the quorum's report of each nonce, in the order of the payloads; at most 500 at once. */
export async function nonceStates(chain: Chain, payloads: readonly RelayPayload[]): Promise<readonly NonceState[]> {
  const permits = payloads.filter((payload): payload is StoredPermit2 => payload.kind === 'permit2')
  const authorizations = payloads.filter((payload) => payload.kind !== 'permit2')
  const [ofPermits, ofAuthorizations] = await Promise.all([
    permits.length === 0 ? [] : permit2Form.states(chain, permits),
    authorizations.length === 0 ? [] : authorizationForm.states(chain, authorizations),
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
  const { to, data, gasLimit } = callOf([payload])
  const isTaken = await chain.trySending({ from: settler, to, data, gasLimit })
  return isTaken ? 'taken' : faultOf(payload, 'notCarried')
}
