import type { Network } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { defineErrors } from '../../../platform/errors.ts'
import { type MasterWalletId, newId, type SweepId } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import { gasErrors, reserveForEach } from '../../plans/index.ts'
import { fail as failWallet } from '../errors.ts'
import { gasOfGasless } from '../gasless.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import { lockSources } from '../managed/source-store.ts'
import { type Candidates, type Funded, gatherCandidates } from './candidates.ts'
import { listPaidSince, lockStoring } from './paying-store.ts'
import type { SweepRequest } from './schema.ts'
import {
  insertSweep,
  insertTransfers,
  markCompleted,
  markScannedTo,
  type NewTransfer,
  type SweepRow,
  type TransferTerms,
} from './store.ts'
import { getSweep } from './sweeps.ts'
import { type SweepTerms, sweepTerms } from './terms.ts'

const failGas = defineErrors(gasErrors)

/** Gas that a child on Tempo costs the operator at most: its first transaction, to a master that never held the token, used 545,000 (hardfork T4). */
export const gasOfTempoTransfer = 700_000n
/** How long an authorization is good: longer than any outage that is worth waiting for. */
const validMs = 86_400_000
const nonceBytes = 32

/**
 * Sweeps what the children hold to their master. Who is swept, how much and under which nonce is stored before anything is signed;
 * the work role does the rest, whatever happens to this process.
 */
export async function requestSweep(ctx: Ctx, walletId: MasterWalletId, request: SweepRequest): Promise<Reply> {
  const wallet = await requireMasterWallet(ctx, walletId)
  if (wallet.retiredAt !== null) throw failWallet('wallet-retired')
  const terms = sweepTerms(ctx, wallet, request, 'request')
  const sweepId = await storeSweep(ctx, terms, await gatherCandidates(ctx, terms))
  return new Reply(202, await getSweep(ctx, { id: walletId, sweepId }))
}

/**
 * Stores a sweep of what was found, in one transaction with its gas and its audit record. No spend policy is asked: the money goes to
 * the children's own master, and out of neither.
 */
export function storeSweep(ctx: Ctx, terms: SweepTerms, candidates: Candidates): Promise<SweepId> {
  return ctx.db.tx(async (tx) => {
    const funded = await lockResting(ctx, tx, terms, candidates)
    const sweep = sweepOf(ctx, terms, candidates)
    await insertSweep(tx, ctx.tenant, sweep)
    const gasOfEach = terms.network.nativeCoin === null ? gasOfTempoTransfer : gasOfGasless
    const gasReservedNanoUsd = ctx.gasPrices.costOf(terms.network, gasOfEach)
    const taken = await insertTransfers(
      tx,
      ctx.tenant,
      { ...transferTerms(terms, sweep), gasReservedNanoUsd },
      transfersOf(ctx, funded),
    )
    await reserveGas(ctx, tx, terms.network, { nanoUsd: gasReservedNanoUsd, wanted: taken.size })
    if (taken.size === 0) await markCompleted(tx, [sweep.id], sweep.createdAt)
    await noteScan(ctx, tx, terms, candidates)
    const details = { sweepId: sweep.id, token: sweep.token, trigger: sweep.trigger, children: taken.size }
    await ctx.audit(tx, { action: 'wallets.sweeps.create', target: terms.wallet.id, details })
    await ctx.idempotency?.commit(tx, sweep.id)
    return sweep.id
  })
}

/**
 * On Tempo, a transfer behind a sweep of all there is could not pay its fee. So children are held here as transfers hold the wallets that
 * they weigh: who has come before is seen, and left to the next sweep, and whoever comes after sees this one.
 */
async function lockResting(
  { tenant }: Ctx,
  tx: Tx,
  { network }: SweepTerms,
  { funded }: Candidates,
): Promise<readonly Funded[]> {
  if (network.nativeCoin !== null || funded.length === 0) return funded
  await lockStoring(tx)
  await lockSources(
    tx,
    tenant,
    funded.map(({ id }) => id),
  )
  const paying = await listPaidSince(tx, network.name, funded)
  return funded.filter(({ address }) => !paying.has(address))
}

function sweepOf(ctx: Ctx, { wallet, token, trigger }: SweepTerms, { isPartial }: Candidates): SweepRow {
  return {
    id: newId('swp', ctx),
    masterWalletId: wallet.id,
    chain: wallet.chain,
    network: wallet.network,
    token: token.symbol,
    decimals: token.decimals,
    trigger,
    isPartial,
    status: 'sweeping',
    createdAt: ctx.clock.now(),
    completedAt: null,
  }
}

/** The authorization of each child is fixed here, its nonce by chance: nobody can guess one and use it up before. On Tempo none is signed. */
function transfersOf(ctx: Ctx, funded: readonly Funded[]): NewTransfer[] {
  return funded.map(({ id, address, rawAmount, frozenRawAmount }) => ({
    childAddressId: id,
    from: address,
    rawAmount,
    frozenRawAmount,
    nonce: ctx.random.bytes(nonceBytes),
  }))
}

function transferTerms(
  { wallet, network, token }: SweepTerms,
  { id, createdAt }: SweepRow,
): Omit<TransferTerms, 'gasReservedNanoUsd'> {
  return {
    sweepId: id,
    network: network.name,
    asset: token.address,
    to: wallet.address,
    validBefore: instantOf(createdAt.getTime() + validMs),
    createdAt,
  }
}

/** Reserves of the budget of the day that the organisation's settlements share; over it nothing is swept. */
async function reserveGas(
  ctx: Ctx,
  tx: Tx,
  network: Network,
  each: { readonly nanoUsd: bigint; readonly wanted: number },
): Promise<void> {
  if (each.wanted === 0) return
  if ((await reserveForEach(ctx, tx, network, each)) < each.wanted) throw failGas('settlement-budget-exceeded')
}

async function noteScan(ctx: Ctx, tx: Tx, { wallet, token }: SweepTerms, { scannedTo }: Candidates): Promise<void> {
  if (scannedTo === undefined) return
  await markScannedTo(tx, ctx.tenant, { walletId: wallet.id, token: token.symbol, scannedTo })
}
