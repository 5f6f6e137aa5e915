import { type Network, type Permit2Settlement, type Reason, reasonOfPermit2Revert } from '@purser/protocol'
import type { Permit2Facts } from '../../../chain/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { refused } from '../credential.ts'
import { fail } from '../errors.ts'
import { listTakenClaims, type NewPayment } from '../store.ts'

export interface Permit2Question {
  readonly network: Network
  readonly settlement: Permit2Settlement
  /** The payer's key is known to have signed; not so for what only a contract could have. */
  readonly isProven: boolean
}

/** Asks the chain what only it knows. A permit that is recorded here already is a duplicate, whatever is wrong with it by now. */
export async function refusePermit2ByChain(
  ctx: Ctx,
  { network, settlement, isProven }: Permit2Question,
  payment: Pick<NewPayment, 'claimKey'>,
): Promise<void> {
  const facts = await ctx.chains.on(network).inspectPermit2({ settlement, settler: ctx.settlerAddress })
  const reason = whyNotPermit2(facts, settlement, isProven)
  if (reason === undefined) return
  if (payment.claimKey !== null && (await listTakenClaims(ctx.db, [payment.claimKey])).size > 0)
    throw fail('duplicate-payment')
  throw refused(reason, { payer: settlement.transfer.owner })
}

/**
 * The protocol's reason for what the chain said, or undefined when it would settle. In the order of the reference implementation:
 * signature, proxy, balance, allowance, and what the contracts said. A spent nonce comes before the money, since nothing can mend it; there
 * it would be `permit2_simulation_failed`, which tells a payer nothing.
 */
export function whyNotPermit2(
  facts: Permit2Facts,
  settlement: Permit2Settlement,
  isProven: boolean,
): Reason | undefined {
  if (!isProven && !facts.payerHasCode) return 'invalid_permit2_signature'
  if (facts.nonceUsed) return 'permit2_invalid_nonce'
  if (facts.trial.ok && facts.proxyDeployed) return undefined
  const said = facts.trial.ok ? undefined : reasonOfPermit2Revert(facts.trial.data ?? '0x')
  if (said === 'invalid_permit2_signature') return said
  if (!facts.proxyDeployed) return 'permit2_proxy_not_deployed'
  if (facts.balance < settlement.amount) return 'permit2_insufficient_balance'
  if (facts.allowance < settlement.amount) return 'permit2_allowance_required'
  return said ?? (facts.payerHasCode && !isProven ? 'invalid_permit2_signature' : 'permit2_simulation_failed')
}
