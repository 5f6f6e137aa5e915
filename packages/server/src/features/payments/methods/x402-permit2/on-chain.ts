import type { Network, Permit2Settlement } from '@purser/protocol'
import { whyNotPermit2 } from '../../../relayer/index.ts'
import { refused } from '../../credential.ts'
import { fail } from '../../errors.ts'
import type { Ctx, Funds } from '../../ports.ts'
import { listTakenClaims, type NewPayment } from '../../store.ts'

export interface Permit2Question {
  readonly network: Network
  readonly settlement: Permit2Settlement
  /** Whether the payer's key is known to have signed; false if only a contract could have. */
  readonly isProven: boolean
}

/**
 * Refuses a payment that the chain would not settle. A permit that is already recorded is a duplicate, even if it has
 * other faults now.
 */
export async function refusePermit2ByChain(
  ctx: Ctx,
  { network, settlement, isProven }: Permit2Question,
  payment: Pick<NewPayment, 'claimKey'>,
): Promise<Funds> {
  const facts = await ctx.chains.on(network).inspectPermit2({ settlement, settler: ctx.settlerAddress })
  const reason = whyNotPermit2(facts, settlement, isProven)
  if (reason === undefined) return { rawBalance: facts.balance, spentIds: [] }
  if (payment.claimKey !== null && (await listTakenClaims(ctx.db, [payment.claimKey])).size > 0)
    throw fail('duplicate-payment')
  throw refused(reason, { payer: settlement.transfer.owner })
}
