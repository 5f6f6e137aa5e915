import { type Network, networkByName } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { Recurring } from '../../../platform/job.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { changeGas, dayOf } from '../../plans/index.ts'
import { authorizationOf, gasOfAuthorisation, shownBy, signatureOf } from '../../wallets/index.ts'
import { markConfirmed } from '../outcome-store.ts'
import { nextLook } from '../pace.ts'
import { lockTransfers } from '../store.ts'
import { endAuthorised } from './lane.ts'
import { type AuthorisedRow, listToAsk, lockAuthorisation, markWaitingAgain, setLookAt } from './store.ts'

type System = Omit<Ctx, 'tenant'>

const perTurnMax = 100
/** How often an authorisation is sent that the chain would take and its transaction did not carry. */
const attemptsMax = 3
/** A block may be undone that is deeper than a network's depth; the end must have been passed by as much. */
const graceSeconds = 60n

/**
 * Asks the chain what became of authorisations that a final transaction did not carry, or that were not sent before they ended. Nothing is
 * guessed, and `failed` is said only of one that nobody can use any more: cancelled, or unused past its end in a final block. Running twice
 * is harmless: each is decided again under its transfer's lock.
 */
export const resolveAuthorised: Recurring = {
  name: 'transfers.resolve-authorised',
  everyMs: 1_000,
  async run(ctx) {
    for (const transfer of await listToAsk(ctx.db, ctx.clock.now(), perTurnMax)) {
      // Put off first: one of which the node cannot tell keeps none behind it waiting.
      await setLookAt(ctx.db, transfer.transferId, nextLook(ctx, transfer.createdAt))
      await resolve(ctx, transfer).catch((error: unknown) =>
        ctx.log.warn({ err: error, transferId: transfer.transferId }, 'the chain could not be asked about a transfer'),
      )
    }
  },
}

async function resolve(ctx: System, transfer: AuthorisedRow): Promise<void> {
  const network = networkByName(transfer.network)
  if (network === undefined) throw new Error('an authorisation on a network that there is not')
  const chain = ctx.chains.on(network)
  const { from: authorizer, nonce, validBefore } = authorizationOf(transfer)
  const token = transfer.asset
  const [state] = await chain.authorizationStates([
    { token, authorizer, nonce, validBefore: validBefore + graceSeconds },
  ])
  if (state === 'used') return recordUse(ctx, network, transfer)
  if (state === 'expired')
    return concluded(ctx, transfer, (tx) =>
      endAuthorised(ctx, tx, [{ transferId: transfer.transferId, fault: 'authorization-expired' }]),
    )
  if (
    state === 'open' &&
    transfer.unresolved &&
    transfer.attempt < attemptsMax &&
    (await wouldGo(ctx, network, transfer))
  )
    await concluded(ctx, transfer, (tx) => sendAgain(ctx, tx, network, transfer))
}

/**
 * Anybody may bring a signed authorisation to the chain, and the money goes to the recipient whoever does: used is done. Until that is
 * deep enough nothing is said.
 */
async function recordUse(ctx: System, network: Network, transfer: AuthorisedRow): Promise<void> {
  const { asset, fromAddress, transferId, createdAt } = transfer
  const { nonce } = authorizationOf(transfer)
  const id = { token: asset, authorizer: fromAddress, nonce }
  const found = await ctx.chains.on(network).findAuthorizationUse(id, { since: createdAt })
  if (found.outcome === 'open' || found.outcome === 'undecided') return
  await concluded(ctx, transfer, async (tx) => {
    if (found.outcome === 'canceled') return endAuthorised(ctx, tx, [{ transferId, fault: 'authorization-cancelled' }])
    if (shownBy(found.receipt.logs)(transfer) !== 'moved')
      return endAuthorised(ctx, tx, [{ transferId, fault: 'not-received' }])
    const seen = { transferId, hash: found.receipt.transactionHash, rawReceived: undefined }
    await markConfirmed(tx, [seen], ctx.clock.now())
    await endAuthorised(ctx, tx, [{ transferId, fault: undefined }])
  })
}

/** Does what was found while the authorisation is as it was read: with the transfer locked first, as wherever both are. */
function concluded(ctx: System, read: AuthorisedRow, doing: (tx: Tx) => Promise<void>): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockTransfers(tx, [read.transferId])
    const { status, unresolved, attempt } = await lockAuthorisation(tx, read.transferId)
    if (status !== read.status || unresolved !== read.unresolved || attempt !== read.attempt) return
    await doing(tx)
  })
}

/** Whether the latest block would take it; where not, it waits: the wallet may be filled again, or a list changed. */
async function wouldGo(ctx: System, network: Network, transfer: AuthorisedRow): Promise<boolean> {
  const { signature, asset, transferId } = transfer
  if (signature === null || transfer.validBefore <= ctx.clock.now()) return false
  const { simulation, nonceUsed, balance } = await ctx.chains.on(network).inspectAuthorization({
    token: asset,
    authorization: authorizationOf(transfer),
    signature: signatureOf({ signature }),
    untrusted: false,
  })
  const refusal = simulation.ok ? undefined : simulation.reason
  if (!simulation.ok) ctx.log.warn({ transferId, refusal, balance }, 'a token refuses an authorised transfer; it waits')
  return simulation.ok && !nonceUsed
}

/** The gas of another try is counted too, and never refused: what is under way is brought to its end. */
async function sendAgain(ctx: System, tx: Tx, network: Network, transfer: AuthorisedRow): Promise<void> {
  const { tenant } = forTenant(ctx, transfer)
  const nanoUsd = ctx.gasPrices.costOf(network, gasOfAuthorisation)
  await changeGas(tx, [{ tenant, network: network.name, day: dayOf(ctx.clock.now()), nanoUsd }])
  await markWaitingAgain(tx, transfer.transferId)
}
