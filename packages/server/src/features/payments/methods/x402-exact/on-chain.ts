import { type Network, reasonOfRevert } from '@purser/protocol'
import type { AuthorizationFacts } from '../../../../chain/port.ts'
import { type GoodVerdict, type JudgedCredential, refused } from '../../credential.ts'
import { fail } from '../../errors.ts'
import type { Ctx, Funds } from '../../ports.ts'
import { listTakenClaims, type NewPayment } from '../../store.ts'

/**
 * Returns the verdict without a deployment if the account exists already. A missing account is deployed only by a factory that
 * the operator lists, since its code runs at the settler's cost.
 */
export async function resolveDeployment(ctx: Ctx, network: Network, verdict: GoodVerdict): Promise<GoodVerdict> {
  if (verdict.deployment === undefined) return verdict
  if ((await ctx.chains.on(network).code(verdict.payer)) !== '0x')
    return { ...verdict, signatureKind: 'contract', deployment: undefined }
  if (ctx.eip6492Factories.has(verdict.deployment.factory.toLowerCase())) return verdict
  throw refused('eip6492_factory_not_allowed', { payer: verdict.payer })
}

/**
 * Checks on chain whether the nonce is used, the balance suffices and the token would accept the transfer. Returns the payer's
 * funds, which recording compares with all of the payer's open payments.
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
 * Returns the protocol's reason for the chain's answer, or undefined if it accepts the payment. The signature comes before the
 * balance, as in the reference implementation: where only the chain can check the signature, the token's error says which of the
 * two failed.
 */
function whyNotByChain(facts: AuthorizationFacts, verdict: GoodVerdict): Parameters<typeof refused>[0] | undefined {
  if (facts.nonceUsed) return 'invalid_exact_evm_nonce_already_used'
  const isProven = verdict.signatureKind === 'eoa'
  if (isProven && facts.balance < verdict.authorization.value) return 'invalid_exact_evm_insufficient_balance'
  if (facts.simulation.ok) return undefined
  const fallback = isProven ? 'invalid_exact_evm_transaction_simulation_failed' : 'invalid_exact_evm_signature'
  return reasonOfRevert(facts.simulation.reason ?? '', fallback)
}
