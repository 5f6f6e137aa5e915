import { type Address, type Network, requireNetwork } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { defineErrors } from '../../../platform/errors.ts'
import { type ChildAddressId, type MasterWalletId, newId, type SweepId } from '../../../platform/ids.ts'
import { Reply } from '../../../platform/operation.ts'
import {
  insertReservations,
  lockCovered,
  type NewReservation,
  type Snapshot,
  type WalletAsset,
  type Want,
  waitForDeposits,
} from '../../funds/index.ts'
import { gasErrors, reserveForEach } from '../../plans/index.ts'
import { fail as failWallet } from '../errors.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import type { Ctx } from '../ports.ts'
import { failNamed } from './errors.ts'
import { type SweepRequest, sweepChildrenMax } from './schema.ts'
import {
  type CandidateRow,
  findScannedTo,
  insertSweep,
  insertTransfers,
  listChildrenBehind,
  listNamedChildren,
  lockStoring,
  markCompleted,
  markScannedTo,
  type NewSweepTransfer,
  type SweepRow,
  type TransferTerms,
} from './store.ts'
import { gasOfEach, getSweep, requireGasPrice, type SweepTerms, sweepTerms } from './sweeps.ts'
import { subjectOf } from './transfer-store.ts'

const failGas = defineErrors(gasErrors)

/** Milliseconds for which an authorization is valid: longer than any outage that is worth waiting for. */
const validMs = 86_400_000
const nonceBytes = 32

/**
 * Sweeps the balances of children to their master. The children, amounts and nonces are stored before anything is signed; the work role
 * does the rest, even if this process dies.
 */
export async function requestSweep(ctx: Ctx, walletId: MasterWalletId, request: SweepRequest): Promise<Reply> {
  const wallet = await requireMasterWallet(ctx, walletId)
  if (wallet.retiredAt !== null) throw failWallet('wallet-retired')
  await ctx.gasPrices.recentReads([requireNetwork(wallet.network)])
  const terms = sweepTerms(ctx, wallet, request, 'request')
  requireGasPrice(ctx, terms.network)
  await waitForDeposits(ctx, terms.network)
  const sweepId = await storeSweep(ctx, terms, await collectCandidates(ctx, terms))
  return new Reply(202, await getSweep(ctx, { id: walletId, sweepId }))
}

/**
 * Stores a sweep of these candidates, in one transaction with its gas and its audit record. No spend policy applies: the money goes to the
 * children's own master.
 */
export function storeSweep(ctx: Ctx, terms: SweepTerms, candidates: Candidates): Promise<SweepId> {
  return ctx.db.tx(async (tx) => {
    const funded = await lockFunded(ctx, tx, terms, candidates)
    const sweep = sweepOf(ctx, terms, candidates)
    if (!(await insertSweep(tx, ctx.tenant, sweep))) throw failWallet('wallet-retired')
    const gasReservedNanoUsd = ctx.gasPrices.costOf(terms.network, gasOfEach(terms.network))
    const transfers = transfersOf(ctx, funded)
    const taken = await insertTransfers(
      tx,
      ctx.tenant,
      { ...transferTerms(terms, sweep), gasReservedNanoUsd },
      transfers,
    )
    const reserved = transfers.filter(({ childAddressId }) => taken.has(childAddressId))
    await insertReservations(tx, ctx.tenant, reservationsOf(ctx.tenant, terms, sweep.id, reserved))
    await reserveGas(ctx, tx, { network: terms.network, nanoUsd: gasReservedNanoUsd, wanted: taken.size })
    if (taken.size === 0) await markCompleted(tx, [sweep.id], sweep.createdAt)
    await noteScan(ctx, tx, terms, candidates)
    const details = { sweepId: sweep.id, token: sweep.token, trigger: sweep.trigger, children: taken.size }
    await ctx.audit(tx, { action: 'wallets.sweeps.create', target: terms.wallet.id, details })
    await ctx.idempotency?.commit(tx, sweep.id)
    return sweep.id
  })
}

/** Locks the children, and returns those whose money no other request has reserved since it was read; the next sweep takes the others. */
async function lockFunded(
  ctx: Pick<Ctx, 'deposits' | 'tenant'>,
  tx: Tx,
  terms: SweepTerms,
  { funded }: Candidates,
): Promise<readonly Funded[]> {
  if (funded.length === 0) return funded
  await lockStoring(tx, ctx.tenant)
  const covered = await lockCovered(
    ctx,
    tx,
    funded.map((child) => ({ snapshot: child.snapshot, wants: [wantOf(ctx.tenant, terms, child)] })),
  )
  return funded.filter((_, index) => covered[index])
}

/** The reservations of a sweep. The operator pays its gas; the child only sends the token. */
function reservationsOf(
  tenant: Tenant,
  terms: SweepTerms,
  sweepId: SweepId,
  transfers: readonly NewSweepTransfer[],
): NewReservation[] {
  const isSigned = terms.network.nativeCoin !== null
  return transfers.map(({ childAddressId, from, rawAmount, nonce }) => ({
    ...wantOf(tenant, terms, { id: childAddressId, address: from, rawAmount }),
    reason: 'sweep',
    subjectId: subjectOf({ sweepId, childAddressId }),
    part: 0,
    transactionId: null,
    authorizationNonce: isSigned ? nonce : null,
  }))
}

function wantOf(tenant: Tenant, terms: SweepTerms, child: Pick<Funded, 'id' | 'address' | 'rawAmount'>): Want {
  return { asset: assetOf(tenant, terms, child), rawAmount: child.rawAmount, gasLimit: 0n, dataBytes: 0 }
}

function sweepOf(
  ctx: Pick<Ctx, 'clock' | 'random'>,
  { wallet, token, trigger }: SweepTerms,
  { isPartial }: Candidates,
): SweepRow {
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

/** The authorization of each child, with a random nonce: nobody can guess one and use it first. On Tempo none is signed. */
function transfersOf(ctx: Pick<Ctx, 'random'>, funded: readonly Funded[]): NewSweepTransfer[] {
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

/** Reserves gas of the daily budget that the organisation's settlements share; over budget nothing is swept. */
async function reserveGas(
  ctx: Pick<Ctx, 'clock' | 'gasPrices' | 'settleNanoUsdPerDayMax' | 'tenant'>,
  tx: Tx,
  gas: { readonly network: Network; readonly nanoUsd: bigint; readonly wanted: number },
): Promise<void> {
  if (gas.wanted === 0) return
  const [fitting = 0] = await reserveForEach(ctx, tx, [gas])
  if (fitting < gas.wanted) throw failGas('settlement-budget-exceeded')
}

async function noteScan(
  ctx: Pick<Ctx, 'tenant'>,
  tx: Tx,
  { wallet, token }: SweepTerms,
  { scannedTo }: Candidates,
): Promise<void> {
  if (scannedTo === undefined) return
  await markScannedTo(tx, ctx.tenant, { walletId: wallet.id, token: token.symbol, scannedTo })
}

/** Children whose balances are read at once, and most that one sweep checks. */
const pageMax = 1_000
const checkedMax = 10_000

/** A child and the amount of the token that may be moved from it. */
interface Funded {
  readonly id: ChildAddressId
  readonly address: Address
  readonly rawAmount: bigint
  /** Amount that screening froze there, which stays. */
  readonly frozenRawAmount: bigint
  /** The child's balances, against which the reservation is evaluated. */
  readonly snapshot: Snapshot
}

export interface Candidates {
  readonly funded: readonly Funded[]
  /** The index behind which the next sweep of all children continues; 0 for the beginning, undefined if they were named. */
  readonly scannedTo: number | undefined
  readonly isPartial: boolean
}

/** The children of a sweep with a sufficient balance on the chain, at most this many. Throws `chain-unavailable` rather than omit one. */
export async function collectCandidates(
  ctx: Pick<Ctx, 'db' | 'readFunds' | 'tenant'>,
  terms: SweepTerms,
  most = sweepChildrenMax,
): Promise<Candidates> {
  if (terms.childAddressIds !== undefined) {
    const named = await requireNamed(ctx, terms, terms.childAddressIds)
    return { funded: await fundedOf(ctx, terms, named), scannedTo: undefined, isPartial: false }
  }
  const first = await findScannedTo(ctx.db, ctx.tenant, terms.wallet.id, terms.token.symbol)
  return scan(ctx, terms, { first, most })
}

async function requireNamed(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  { wallet }: SweepTerms,
  ids: readonly ChildAddressId[],
): Promise<readonly CandidateRow[]> {
  const found = await listNamedChildren(ctx.db, ctx.tenant, wallet.id, ids)
  const known = new Set<string>(found.map((child) => child.id))
  const errors = ids.flatMap((id, index) =>
    known.has(id) ? [] : [{ path: `/childAddressIds/${index}`, message: 'is not a child address of this wallet' }],
  )
  if (errors.length > 0) throw failNamed('child-address-not-found', { errors })
  return found
}

/** Checks children page by page until the sweep is full, the maximum was checked, or no more exist. */
async function scan(
  ctx: Pick<Ctx, 'db' | 'readFunds' | 'tenant'>,
  terms: SweepTerms,
  { first, most }: { readonly first: number; readonly most: number },
): Promise<Candidates> {
  const funded: Funded[] = []
  let behind = first
  for (let checked = 0; checked < checkedMax; checked += pageMax) {
    const page = await listChildrenBehind(ctx.db, ctx.tenant, terms.wallet.id, { behind, limit: pageMax })
    const remaining = most - funded.length
    const own = await fundedOf(ctx, terms, page)
    funded.push(...own.slice(0, remaining))
    if (own.length > remaining) {
      const last = page.find((child) => child.id === own[remaining - 1]?.id)
      return { funded, scannedTo: last?.childIndex ?? behind, isPartial: true }
    }
    if (page.length < pageMax) return { funded, scannedTo: 0, isPartial: first > 0 }
    behind = page.at(-1)?.childIndex ?? behind
  }
  return { funded, scannedTo: behind, isPartial: true }
}

/** Those children that can send enough, as of a block whose deposits are booked. */
async function fundedOf(
  ctx: Pick<Ctx, 'readFunds' | 'tenant'>,
  { network, token, rawAmountMin }: SweepTerms,
  children: readonly CandidateRow[],
) {
  if (children.length === 0) return []
  const assets = children.map(({ id, address }) => assetOf(ctx.tenant, { network, token }, { id, address }))
  const { snapshot, spendable } = await ctx.readFunds(network, assets)
  return children.flatMap(({ id, address }, index): Funded[] => {
    const { available = 0n, frozen = 0n, reserved = 0n } = spendable[index] ?? {}
    // On Tempo a transfer in progress may need to raise its fee, which the token pays.
    const isPaying = network.nativeCoin === null && reserved > 0n
    return isPaying || available < rawAmountMin
      ? []
      : [{ id, address, rawAmount: available, frozenRawAmount: frozen, snapshot }]
  })
}

/** The asset of a sweep's token at one of its children. */
function assetOf(
  tenant: Tenant,
  { network, token }: Pick<SweepTerms, 'network' | 'token'>,
  { id: walletId, address: owner }: Pick<Funded, 'id' | 'address'>,
): WalletAsset {
  return { tenant, network, walletId, owner, coin: token }
}
