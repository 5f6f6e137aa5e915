import {
  type Call3,
  decodeAuthorizationUsedLog,
  decodeTransferLog,
  encodeTransferWithAuthorization,
  type Reason,
  reasonOfRevert,
  sameAddress,
  type TransferAuthorization,
} from '@purser/protocol'
import type { Chain, Log } from '../../../chain/port.ts'
import type { AuthorizationPayload, RelayFault, StoredAuthorization } from '../port.ts'
import type { Form, Trial, Use, UseOptions } from './form.ts'

/** Gas limit of one authorization; unused gas is not paid. Contract accounts may run code of their own. */
const gasOfKind = { ecdsa: 100_000n, bytes: 400_000n } as const
const gasOfDeployment = 1_200_000n

/** A signed EIP-3009 authorization. */
export const authorizationForm: Form<AuthorizationPayload> = {
  gas: gasOfAuthorization,
  calls: callsOf,
  proof: proofIn,
  expired: () => ({ kind: 'expired', reason: 'invalid_exact_evm_payload_authorization_valid_before' }),
  notCarried: () => ({ kind: 'not-carried', reason: 'invalid_exact_evm_transaction_failed' }),
  used: () => ({ kind: 'nonce-used', reason: nonceUsed }),
  states: (chain, payloads, finality) =>
    chain.authorizationStates(
      payloads.map(({ token, from, nonce, validBefore }) => ({
        token,
        authorizer: from,
        nonce,
        validBefore: BigInt(validBefore),
      })),
      finality,
    ),
  find,
  judge,
}

const nonceUsed: Reason = 'invalid_exact_evm_nonce_already_used'

/** Returns the most gas that one authorization costs the operator, without the base cost of its transaction. */
export function gasOfAuthorization({
  signature,
  deployment,
  gas,
}: Pick<StoredAuthorization, 'signature' | 'deployment' | 'gas'>): bigint {
  return gas !== undefined ? BigInt(gas) : gasOfKind[signature.kind] + (deployment === null ? 0n : gasOfDeployment)
}

/** The authorization as it was signed. */
export function authorizationOf(
  stored: Omit<StoredAuthorization, 'kind' | 'signature' | 'deployment'>,
): TransferAuthorization {
  return {
    from: stored.from,
    to: stored.to,
    value: BigInt(stored.value),
    validAfter: BigInt(stored.validAfter),
    validBefore: BigInt(stored.validBefore),
    nonce: stored.nonce,
  }
}

function callsOf(payload: AuthorizationPayload): Call3[] {
  const { token, deployment, signature } = payload
  const callData = encodeTransferWithAuthorization(authorizationOf(payload), signature)
  const transfer: Call3 = { target: token, allowFailure: true, callData }
  if (deployment === null) return [transfer]
  return [{ target: deployment.factory, allowFailure: true, callData: deployment.calldata }, transfer]
}

/**
 * Returns whether the token used the authorization and moved its value from its signer to its receiver. A success status alone
 * proves nothing, since calls in a batch may fail one by one. Neither do the two logs alone: the nonce may have been used by an
 * authorization of another value beside a transfer that pays for something else. FiatToken logs each use directly before its
 * own transfer. Every log is read once, however many payloads there are.
 */
function proofIn(logs: readonly Log[]): (payload: AuthorizationPayload) => boolean {
  const seen = new Set(logs.flatMap((log, index) => factOf(log, logs[index + 1]) ?? []))
  return ({ token, from, to, value, nonce }) => seen.has(fact(token, from, nonce, to, BigInt(value)))
}

function factOf(log: Log, next: Log | undefined): string | undefined {
  const used = decodeAuthorizationUsedLog(log)
  const moved = next === undefined ? undefined : decodeTransferLog(next)
  if (used === undefined || moved === undefined || next === undefined) return undefined
  if (!sameAddress(log.address, next.address) || !sameAddress(used.authorizer, moved.from)) return undefined
  return fact(log.address, used.authorizer, used.nonce, moved.to, moved.value)
}

function fact(...words: readonly (string | bigint)[]): string {
  return words.join(' ').toLowerCase()
}

/**
 * Finds the use of a nonce. Anybody may send a signed authorization, so a used nonce is no failure: its transaction shows whether
 * this money moved.
 */
async function find(chain: Chain, payload: AuthorizationPayload, search: UseOptions): Promise<Use> {
  const { token, from: authorizer, nonce } = payload
  const found = await chain.findAuthorizationUse({ token, authorizer, nonce }, search)
  if (found.outcome === 'canceled')
    return { outcome: 'lost', fault: { kind: 'canceled', reason: nonceUsed }, isLogged: true }
  if (found.outcome !== 'used') return { outcome: 'undecided' }
  const { transactionHash, blockNumber: number, blockHash: hash, logs } = found.receipt
  if (proofIn(logs)(payload)) return { outcome: 'settled', transactionHash, block: { number, hash } }
  return { outcome: 'lost', fault: { kind: 'nonce-used', reason: nonceUsed }, isLogged: true }
}

async function judge(chain: Chain, payload: AuthorizationPayload): Promise<Trial> {
  const authorization = authorizationOf(payload)
  const { token, signature, deployment, gas } = payload
  const facts = await chain.inspectAuthorization({
    token,
    authorization,
    signature,
    deployment: deployment === null ? undefined : { factory: deployment.factory, factoryCalldata: deployment.calldata },
    untrusted: true,
    gas: gas === undefined ? undefined : BigInt(gas),
    refusal: 'final',
  })
  if (facts.nonceUsed) return 'used'
  if (facts.balance < authorization.value) return shortOf('invalid_exact_evm_insufficient_balance')
  if (facts.simulation.ok) return 'taken'
  return refusedFor(facts.simulation.reason)
}

function shortOf(reason: Reason): RelayFault {
  return { kind: 'insufficient-balance', reason }
}

function refusedFor(words: string | null): RelayFault {
  return { kind: 'refused', reason: reasonOfRevert(words ?? '', 'invalid_exact_evm_transaction_failed') }
}
