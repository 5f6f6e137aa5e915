import type { Address } from '@purser/protocol'
import type { Tenant } from '../../../platform/ctx.ts'
import type { ChildAddressId } from '../../../platform/ids.ts'
import type { Place, Snapshot } from '../../funds/index.ts'
import type { Ctx } from '../ports.ts'
import { failNamed } from './errors.ts'
import { sweepChildrenMax } from './schema.ts'
import { type CandidateRow, findScannedTo, listChildrenBehind, listNamedChildren } from './store.ts'
import type { SweepTerms } from './sweeps.ts'

/** Children whose balances are read at once, and most that one sweep checks. */
const pageMax = 1_000
const checkedMax = 10_000

/** A child and the amount of the token that may be moved from it. */
export interface Funded {
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
  /** Where the next sweep of all children continues; 0 for the beginning, undefined if they were named. */
  readonly scannedTo: number | undefined
  readonly isPartial: boolean
}

/** The children of a sweep with a sufficient balance on the chain. Throws `chain-unavailable` rather than omit one. */
export async function collectCandidates(ctx: Ctx, terms: SweepTerms): Promise<Candidates> {
  if (terms.childAddressIds !== undefined) {
    const named = await requireNamed(ctx, terms, terms.childAddressIds)
    return { funded: await fundedOf(ctx, terms, named), scannedTo: undefined, isPartial: false }
  }
  const first = await findScannedTo(ctx.db, ctx.tenant, terms.wallet.id, terms.token.symbol)
  return scan(ctx, terms, first)
}

async function requireNamed(
  ctx: Ctx,
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
async function scan(ctx: Ctx, terms: SweepTerms, first: number): Promise<Candidates> {
  const funded: Funded[] = []
  let behind = first
  for (let checked = 0; checked < checkedMax; checked += pageMax) {
    const page = await listChildrenBehind(ctx.db, ctx.tenant, terms.wallet.id, { behind, limit: pageMax })
    const remaining = sweepChildrenMax - funded.length
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
async function fundedOf(ctx: Ctx, { network, token, rawAmountMin }: SweepTerms, children: readonly CandidateRow[]) {
  if (children.length === 0) return []
  const places = children.map(({ id, address }) => placeOf(ctx.tenant, { network, token }, { id, address }))
  const { snapshot, spendable } = await ctx.readFunds(network, places)
  return children.flatMap(({ id, address }, index): Funded[] => {
    const { available = 0n, frozen = 0n, reserved = 0n } = spendable[index] ?? {}
    // On Tempo a transfer in progress may need to raise its fee, which the token pays.
    const isPaying = network.nativeCoin === null && reserved > 0n
    return isPaying || available < rawAmountMin
      ? []
      : [{ id, address, rawAmount: available, frozenRawAmount: frozen, snapshot }]
  })
}

/** The place of a sweep's token at one of its children. */
export function placeOf(
  tenant: Tenant,
  { network, token }: Pick<SweepTerms, 'network' | 'token'>,
  { id: walletId, address: owner }: Pick<Funded, 'id' | 'address'>,
): Place {
  return { tenant, network, walletId, owner, coin: token }
}
