import { type Network, networkByName } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { authorizationOf, signatureOf, sweptBy } from './authorisation.ts'
import { listLapsed, listUnresolved, markWaitingAgain, type TransferRow } from './lane-store.ts'
import { recordEnded } from './outcome.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
/** How often a transfer whose authorisation is still good is sent before it is given up. */
const attemptsMax = 3
/** Waits this long after an authorisation's end, so that a block with an earlier time cannot still take it. */
const lapseGraceMs = 60_000

/**
 * Asks the chain about transfers that a final transaction did not carry, and ends those that lapsed unsent. Nothing is guessed: the
 * nonce's state decides. Running twice is harmless, since every step moves a transfer only from the state that it was read in.
 */
export const resolveSweeps: Recurring = {
  name: 'wallets.resolve-sweeps',
  everyMs: 1_000,
  async run(ctx) {
    for (const network of ctx.chains.configured) {
      if (networkByName(network.name)?.settlesEip3009 !== true) continue
      await resolveOn(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'the chain could not be asked; sweeps stay open'),
      )
    }
  },
}

async function resolveOn(ctx: System, network: Network): Promise<void> {
  for (const transfer of await listUnresolved(ctx.db, network.name, perTurnMax)) await resolve(ctx, network, transfer)
  const before = instantOf(ctx.clock.now().getTime() - lapseGraceMs)
  for (const transfer of await listLapsed(ctx.db, network.name, before, perTurnMax)) {
    if (await recordIfOnChain(ctx, network, transfer)) continue
    await end(ctx, transfer, 'authorization-expired')
  }
}

async function resolve(ctx: System, network: Network, transfer: TransferRow): Promise<void> {
  if (await recordIfOnChain(ctx, network, transfer)) return
  const refusal = await refusalNow(ctx, network, transfer)
  if (refusal === 'unknown') return
  if (refusal === undefined && transfer.attempt < attemptsMax) return markWaitingAgain(ctx.db, transfer)
  await end(ctx, transfer, refusal ?? 'transfer-failed')
}

/**
 * Anybody may bring a signed authorisation to the chain, and the money goes to the master whoever does: a used nonce is done.
 * Until it is deep enough nothing is said. Answers whether the nonce is used.
 */
async function recordIfOnChain(ctx: System, network: Network, transfer: TransferRow): Promise<boolean> {
  const chain = ctx.chains.on(network)
  const { from, nonce } = authorizationOf(transfer)
  if (!(await chain.authorizationState(transfer.asset, from, nonce))) return false
  const found = await chain.findAuthorizationUsed(transfer.asset, from, nonce, { since: transfer.createdAt })
  if (found.outcome === 'used' && sweptBy(found.logs)(transfer)) {
    const txHash = found.transactionHash
    await ctx.db.tx((tx) => recordEnded(ctx, tx, [transfer], { status: 'swept', txHash }))
  } else if (found.outcome === 'cancelled') await end(ctx, transfer, 'authorization-cancelled')
  return true
}

/** Why the chain would refuse the transfer now, undefined when it would take it, `unknown` when it was used meanwhile. */
async function refusalNow(ctx: System, network: Network, transfer: TransferRow): Promise<string | undefined> {
  const { signature } = transfer
  if (signature === null) return 'transfer-failed'
  if (transfer.validBefore <= ctx.clock.now()) return 'authorization-expired'
  const facts = await ctx.chains.on(network).inspectAuthorization({
    token: transfer.asset,
    authorization: authorizationOf(transfer),
    signature: signatureOf({ ...transfer, signature }),
    untrusted: false,
  })
  if (facts.nonceUsed) return 'unknown'
  if (facts.balance < transfer.rawAmount) return 'insufficient-balance'
  return facts.simulation.ok ? undefined : 'transfer-refused'
}

function end(ctx: System, transfer: TransferRow, reason: string): Promise<void> {
  return ctx.db.tx((tx) => recordEnded(ctx, tx, [transfer], { status: 'failed', reason }))
}
