import { type Address, type Network, type Reason, reasonOfRevert } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import { whyNotPermit2 } from './permit2/on-chain.ts'
import { settlementOf, transferOf } from './permit2/settlement.ts'
import { authorizationOf, settledBy } from './settlement-call.ts'
import { recordEnded, recordSettled } from './settlement-outcome.ts'
import { listLapsed, listUnresolved, markWaitingAgain, type SettlementRow } from './settlement-store.ts'
import type { StoredAuthorization, StoredPermit2 } from './store.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
/** How often a payment whose authorisation is still good is sent before it is given up as failed. */
const attemptsMax = 3
/** Waits this long after an authorisation's end, so that a block with an earlier time cannot still take it. */
const lapseGraceMs = 60_000

/** Says what became of payments that their own transaction did not carry. */
export async function resolveUnresolved(ctx: System, network: Network): Promise<void> {
  for (const payment of await listUnresolved(ctx.db, network.name, perTurnMax)) await resolve(ctx, network, payment)
}

async function resolve(ctx: System, network: Network, payment: SettlementRow): Promise<void> {
  if (await recordIfOnChain(ctx, network, payment)) return
  const refusal = await refusalNow(ctx, network, payment)
  if (refusal === 'unknown') return
  if (refusal === undefined && payment.settleAttempt < attemptsMax) return markWaitingAgain(ctx.db, payment.id)
  await ctx.db.tx((tx) => recordEnded(ctx, tx, payment, 'settlement_failed', refusal ?? failureOf(payment)))
}

/** The reason where the chain gave none. */
function failureOf({ settlement }: SettlementRow): Reason {
  const isUpto = settlement.kind === 'permit2' && settlement.scheme === 'upto'
  return isUpto ? 'invalid_upto_evm_transaction_failed' : 'invalid_exact_evm_transaction_failed'
}

function lapseReasonOf({ settlement }: SettlementRow): Reason {
  return settlement.kind === 'permit2'
    ? 'permit2_deadline_expired'
    : 'invalid_exact_evm_payload_authorization_valid_before'
}

/** Ends what lapsed without being sent, unless somebody else has brought it to the chain. */
export async function resolveLapsed(ctx: System, network: Network): Promise<void> {
  const before = instantOf(ctx.clock.now().getTime() - lapseGraceMs)
  for (const payment of await listLapsed(ctx.db, network.name, before, perTurnMax)) {
    if (await recordIfOnChain(ctx, network, payment)) continue
    await ctx.db.tx((tx) => recordEnded(ctx, tx, payment, 'voided', lapseReasonOf(payment)))
  }
}

/**
 * Anybody may bring a signed authorisation to the chain, so a used nonce is no failure: the chain tells which transaction
 * moved the money, or that none did. Until that is deep enough nothing is said. Answers whether the nonce is used.
 */
function recordIfOnChain(ctx: System, network: Network, payment: SettlementRow): Promise<boolean> {
  const { settlement } = payment
  return settlement.kind === 'permit2'
    ? recordPermit2IfOnChain(ctx, network, { ...payment, settlement })
    : recordAuthorizationIfOnChain(ctx, network, { ...payment, settlement })
}

type By<Settlement> = SettlementRow & { readonly settlement: Settlement }

async function recordAuthorizationIfOnChain(
  ctx: System,
  network: Network,
  payment: By<StoredAuthorization>,
): Promise<boolean> {
  const chain = ctx.chains.on(network)
  const { from, nonce } = payment.settlement
  const token = payment.asset as Address
  if (!(await chain.authorizationState(token, from, nonce))) return false
  const found = await chain.findAuthorizationUsed(token, from, nonce, { since: payment.createdAt })
  if (found.outcome === 'used' && settledBy(found.logs)(payment)) {
    await ctx.db.tx((tx) => recordSettled(ctx, tx, [payment], found.transactionHash))
  } else if (found.outcome === 'cancelled') {
    await ctx.db.tx((tx) => recordEnded(ctx, tx, payment, 'settlement_failed', 'invalid_exact_evm_nonce_already_used'))
  }
  return true
}

/** Of a permit only a transaction straight to its proxy is proof; a nonce that is gone without one paid for nothing here. */
async function recordPermit2IfOnChain(ctx: System, network: Network, payment: By<StoredPermit2>): Promise<boolean> {
  const chain = ctx.chains.on(network)
  const transfer = transferOf(payment.settlement)
  if (!(await chain.permit2NonceUsed(transfer))) return false
  const amount = BigInt(payment.settlement.charged)
  const found = await chain.findPermit2Use(transfer, { amount, since: payment.createdAt })
  if (found.outcome === 'used') {
    await ctx.db.tx((tx) => recordSettled(ctx, tx, [payment], found.transactionHash))
  } else if (found.outcome === 'elsewhere') {
    await ctx.db.tx((tx) => recordEnded(ctx, tx, payment, 'settlement_failed', 'permit2_invalid_nonce'))
  }
  return true
}

/** Why the chain would refuse the payment now, undefined when it would take it, `unknown` when it was used meanwhile. */
function refusalNow(ctx: System, network: Network, payment: SettlementRow): Promise<string | undefined> {
  const { settlement } = payment
  return settlement.kind === 'permit2'
    ? permit2RefusalNow(ctx, network, settlement)
    : authorizationRefusalNow(ctx, network, { ...payment, settlement })
}

async function permit2RefusalNow(ctx: System, network: Network, stored: StoredPermit2): Promise<string | undefined> {
  if (BigInt(stored.deadline) * 1000n <= BigInt(ctx.clock.now().getTime())) return 'permit2_deadline_expired'
  const settlement = settlementOf(stored)
  const facts = await ctx.chains.on(network).inspectPermit2({ settlement, settler: ctx.settlerAddress })
  if (facts.nonceUsed) return 'unknown'
  return whyNotPermit2(facts, settlement, true)
}

async function authorizationRefusalNow(
  ctx: System,
  network: Network,
  { asset, settlement }: By<StoredAuthorization>,
): Promise<string | undefined> {
  const authorization = authorizationOf(settlement)
  if (authorization.validBefore * 1000n <= BigInt(ctx.clock.now().getTime()))
    return 'invalid_exact_evm_payload_authorization_valid_before'
  const facts = await ctx.chains.on(network).inspectAuthorization({
    token: asset as Address,
    authorization,
    signature: settlement.signature,
    deployment:
      settlement.deployment === null
        ? undefined
        : { factory: settlement.deployment.factory, factoryCalldata: settlement.deployment.calldata },
    untrusted: settlement.signature.kind === 'bytes',
  })
  if (facts.nonceUsed) return 'unknown'
  if (facts.balance < authorization.value) return 'invalid_exact_evm_insufficient_balance'
  if (facts.simulation.ok) return undefined
  return reasonOfRevert(facts.simulation.reason ?? '', 'invalid_exact_evm_transaction_failed')
}
