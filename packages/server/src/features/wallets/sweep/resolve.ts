import { type Network, networkByName } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { authorizationOf, shownBy, signatureOf } from '../authorisation.ts'
import { listLapsed, listUnresolved, markWaitingAgain, type TransferRow } from './lane-store.ts'
import { recordEnded } from './outcome.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
/** So many failures in a row, and the network is left for the next turn. */
const failuresMax = 3
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
  const unresolved = await listUnresolved(ctx.db, network.name, perTurnMax)
  await oneByOne(ctx, unresolved, (transfer) => resolve(ctx, network, transfer))
  const before = instantOf(ctx.clock.now().getTime() - lapseGraceMs)
  await oneByOne(ctx, await listLapsed(ctx.db, network.name, before, perTurnMax), async (transfer) => {
    if (!(await recordIfOnChain(ctx, network, transfer))) await end(ctx, transfer, 'authorization-expired')
  })
}

/**
 * A transfer of which the node cannot tell keeps none behind it waiting; the turn is over when a few in a row fail, since then it is the node.
 */
async function oneByOne(
  ctx: System,
  transfers: readonly TransferRow[],
  settle: (transfer: TransferRow) => Promise<void>,
): Promise<void> {
  let failures = 0
  for (const transfer of transfers) {
    try {
      await settle(transfer)
      failures = 0
    } catch (error) {
      failures += 1
      if (failures === failuresMax) throw error
      const { sweepId, childAddressId } = transfer
      ctx.log.warn({ err: error, sweepId, childAddressId }, 'a transfer of a sweep could not be asked about')
    }
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
  if (found.outcome === 'used' && shownBy(found.logs)(transfer) === 'moved') {
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
