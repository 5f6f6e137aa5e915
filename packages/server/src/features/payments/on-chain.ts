import { type Network, reasonOfRevert } from '@purser/protocol'
import type { AuthorizationFacts } from '../../chain/port.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { type GoodVerdict, type JudgedCredential, refused } from './credential.ts'
import { fail } from './errors.ts'
import type { Funds } from './record.ts'
import { listTakenClaims, type NewPayment } from './store.ts'

/**
 * An account to come is deployed only by a factory that the operator lists, since its code runs at the settler's cost. One that is
 * there already needs no deployment, whatever its wrapper names.
 */
export async function withAccountAsItIs(ctx: Ctx, network: Network, verdict: GoodVerdict): Promise<GoodVerdict> {
  if (verdict.deployment === undefined) return verdict
  if ((await ctx.chains.on(network).code(verdict.payer)) !== '0x')
    return { ...verdict, signatureKind: 'contract', deployment: undefined }
  if (ctx.eip6492Factories.has(verdict.deployment.factory.toLowerCase())) return verdict
  throw refused('eip6492_factory_not_allowed', { payer: verdict.payer })
}

/**
 * Asks the chain what only it knows: whether the nonce is used, whether the money is there, whether the token would take it. Answers
 * what the payer has, for recording to compare with all that the payer has open.
 */
export async function refuseByChain(
  ctx: Ctx,
  network: Network,
  judged: JudgedCredential,
  payment: NewPayment,
): Promise<Funds> {
  const { verdict, token } = judged
  if (verdict.signatureKind === 'unproven' && (await ctx.chains.on(network).code(verdict.payer)) === '0x') {
    throw refused('invalid_exact_evm_signature', { payer: verdict.payer })
  }
  const facts = await ctx.chains.on(network).inspectAuthorization({
    token: token.address,
    authorization: verdict.authorization,
    signature: verdict.signature,
    deployment: verdict.deployment,
    untrusted: verdict.signatureKind !== 'eoa',
  })
  const reason = whyNotByChain(facts, verdict)
  if (reason === undefined) return { rawBalance: facts.balance, spentIds: [] }
  if (payment.claimKey !== null && (await listTakenClaims(ctx.db, [payment.claimKey])).size > 0)
    throw fail('duplicate-payment')
  throw refused(reason, { payer: verdict.payer })
}

/**
 * The protocol's reason for what the chain said, or undefined when it would take the payment. A signature comes before the
 * money, as in the reference implementation: where only the chain can judge it, the token's words tell which one was short.
 */
function whyNotByChain(facts: AuthorizationFacts, verdict: GoodVerdict): Parameters<typeof refused>[0] | undefined {
  if (facts.nonceUsed) return 'invalid_exact_evm_nonce_already_used'
  const isProven = verdict.signatureKind === 'eoa'
  if (isProven && facts.balance < verdict.authorization.value) return 'invalid_exact_evm_insufficient_balance'
  if (facts.simulation.ok) return undefined
  const fallback = isProven ? 'invalid_exact_evm_transaction_simulation_failed' : 'invalid_exact_evm_signature'
  return reasonOfRevert(facts.simulation.reason ?? '', fallback)
}
