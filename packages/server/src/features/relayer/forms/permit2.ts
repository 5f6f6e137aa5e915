import {
  decodeTransferLog,
  encodePermit2Settle,
  type Permit2Settlement,
  type Permit2Transfer,
  type Reason,
  reasonOfPermit2Revert,
  sameAddress,
} from '@purser/protocol'
import type { Chain, Log, Permit2Facts } from '../../../chain/port.ts'
import type { RelayFault, StoredPermit2 } from '../port.ts'
import type { Form, Trial, Use, UseOptions } from './form.ts'

/** Most gas that a permit costs the operator, without the base cost of its transaction. */
export const gasOfPermit2 = 400_000n

/** Gas that settling an `upto` permit is granted, and that its smallest charge pays for. */
export const gasOfUpto = { ordinary: 200_000n, withApproval: 300_000n } as const

/**
 * A signed Permit2 transfer by one of the x402 proxies. It is sent alone, because its proxy checks the sender and its payer may
 * be a contract.
 */
export const permit2Form: Form<StoredPermit2> = {
  gas: ({ gas }) => (gas === undefined ? gasOfPermit2 : BigInt(gas)),
  calls: (stored) => [
    { target: stored.spender, allowFailure: true, callData: encodePermit2Settle(settlementOf(stored)) },
  ],
  proof: proofIn,
  expired: () => ({ kind: 'expired', reason: 'permit2_deadline_expired' }),
  used: () => nonceUsed,
  notCarried: ({ scheme }) => ({
    kind: 'not-carried',
    reason: scheme === 'upto' ? 'invalid_upto_evm_transaction_failed' : 'invalid_exact_evm_transaction_failed',
  }),
  states: (chain, payloads, finality) =>
    chain.permitStates(
      payloads.map(({ owner, nonce, deadline }) => ({ owner, nonce: BigInt(nonce), deadline: BigInt(deadline) })),
      finality,
    ),
  find,
  judge,
}

const nonceUsed: RelayFault = { kind: 'nonce-used', reason: 'permit2_invalid_nonce' }

/** Permit2 writes no log of a nonce: the transaction with these logs carries only this permit. */
function proofIn(logs: readonly Log[]): (payload: StoredPermit2) => boolean {
  return ({ token, owner, witness, charged }) =>
    logs.some((log) => {
      const moved = sameAddress(log.address, token) ? decodeTransferLog(log) : undefined
      if (moved === undefined || moved.value !== BigInt(charged)) return false
      return sameAddress(moved.from, owner) && sameAddress(moved.to, witness.to)
    })
}

/**
 * Finds the use of a nonce. A transaction that calls the proxy directly proves a permit. A transaction through another
 * contract proves as many permits as it has matching logs, but not which ones. A nonce that was spent in any other way
 * paid for nothing here.
 */
async function find(chain: Chain, stored: StoredPermit2, search: UseOptions): Promise<Use> {
  const found = await chain.findPermit2Use(transferOf(stored), { amount: BigInt(stored.charged), ...search })
  if (found.outcome === 'used')
    return {
      outcome: 'settled',
      transactionHash: found.transactionHash,
      block: undefined,
      logIndexes: found.logIndexes,
    }
  return found.outcome === 'elsewhere'
    ? { outcome: 'lost', fault: nonceUsed, isLogged: false }
    : { outcome: 'undecided' }
}

async function judge(chain: Chain, stored: StoredPermit2, settler: `0x${string}`): Promise<Trial> {
  const settlement = settlementOf(stored)
  const facts = await chain.inspectPermit2({
    settlement,
    settler,
    gas: stored.gas === undefined ? undefined : BigInt(stored.gas),
    refusal: 'final',
  })
  if (facts.nonceUsed) return 'used'
  const reason = whyNotPermit2(facts, settlement, { isProven: true })
  if (reason === undefined) return 'taken'
  return { kind: reason === 'permit2_insufficient_balance' ? 'insufficient-balance' : 'refused', reason }
}

/**
 * Returns the protocol's reason for the chain's result, or undefined if it would settle. In the order of the reference
 * implementation: signature, proxy, balance, allowance, and the contracts' errors. A spent nonce comes before the balance, since
 * it is final; the reference's `permit2_simulation_failed` would not help a payer.
 */
export function whyNotPermit2(
  facts: Permit2Facts,
  settlement: Permit2Settlement,
  { isProven }: { readonly isProven: boolean },
): Reason | undefined {
  if (!isProven && !facts.payerHasCode) return 'invalid_permit2_signature'
  if (facts.nonceUsed) return 'permit2_invalid_nonce'
  if (facts.trial.ok && facts.proxyDeployed && facts.balance >= settlement.amount) return undefined
  const revertReason = facts.trial.ok ? undefined : reasonOfPermit2Revert(facts.trial.data ?? '0x')
  if (revertReason === 'invalid_permit2_signature') return revertReason
  if (!facts.proxyDeployed) return 'permit2_proxy_not_deployed'
  if (facts.balance < settlement.amount) return 'permit2_insufficient_balance'
  if (facts.allowance < settlement.amount) return 'permit2_allowance_required'
  return revertReason ?? (facts.payerHasCode && !isProven ? 'invalid_permit2_signature' : 'permit2_simulation_failed')
}

/** Returns the signed transfer of a stored permit. */
function transferOf(stored: StoredPermit2): Permit2Transfer {
  const { to, validAfter, facilitator } = stored.witness
  return {
    scheme: stored.scheme,
    spender: stored.spender,
    owner: stored.owner,
    token: stored.token,
    permitted: BigInt(stored.permitted),
    nonce: BigInt(stored.nonce),
    deadline: BigInt(stored.deadline),
    witness: { to, validAfter: BigInt(validAfter), facilitator: facilitator ?? undefined },
  }
}

/** Returns what the settler sends to the proxy for a stored permit. */
export function settlementOf(stored: StoredPermit2): Permit2Settlement {
  const permit = stored.permit2612
  return {
    transfer: transferOf(stored),
    amount: BigInt(stored.charged),
    signature: stored.signature,
    permit2612:
      permit === null
        ? undefined
        : {
            value: BigInt(permit.value),
            deadline: BigInt(permit.deadline),
            v: permit.v === 27 ? 27 : 28,
            r: permit.r,
            s: permit.s,
          },
  }
}
