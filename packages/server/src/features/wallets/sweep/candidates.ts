import type { Address } from '@purser/protocol'
import type { Ctx, Tenant } from '../../../platform/ctx.ts'
import type { ChildAddressId } from '../../../platform/ids.ts'
import { type Place, readFunds, type Snapshot } from '../../funds/index.ts'
import { failNamed } from './errors.ts'
import { sweepChildrenMax } from './schema.ts'
import { type CandidateRow, findScannedTo, listChildrenBehind, listNamedChildren } from './store.ts'
import type { SweepTerms } from './terms.ts'

/** Children whose balances are read at once, and those that one sweep looks at. */
const pageMax = 1_000
const lookedAtMax = 10_000

/** A child and how much of the token may be moved from it. */
export interface Funded {
  readonly id: ChildAddressId
  readonly address: Address
  readonly rawAmount: bigint
  /** What screening froze there, which stays. */
  readonly frozenRawAmount: bigint
  /** What the child was found to have, by which the reservation is judged. */
  readonly snapshot: Snapshot
}

export interface Candidates {
  readonly funded: readonly Funded[]
  /** Where the next sweep of all children goes on; 0 for the beginning, undefined when they were named. */
  readonly scannedTo: number | undefined
  readonly isPartial: boolean
}

/** The children of a sweep that hold enough, as the chain says now. Throws `chain-unavailable` rather than to leave one out. */
export async function gatherCandidates(ctx: Ctx, terms: SweepTerms): Promise<Candidates> {
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
    known.has(id) ? [] : [{ path: `/childAddressIds/${index}`, message: 'is no child address of this wallet' }],
  )
  if (errors.length > 0) throw failNamed('child-address-not-found', { errors })
  return found
}

/** Looks at children page by page until a sweep is full, so many were looked at, or there are no more. */
async function scan(ctx: Ctx, terms: SweepTerms, first: number): Promise<Candidates> {
  const funded: Funded[] = []
  let behind = first
  for (let lookedAt = 0; lookedAt < lookedAtMax; lookedAt += pageMax) {
    const page = await listChildrenBehind(ctx.db, ctx.tenant, terms.wallet.id, { behind, limit: pageMax })
    const room = sweepChildrenMax - funded.length
    const own = await fundedOf(ctx, terms, page)
    funded.push(...own.slice(0, room))
    if (own.length > room) {
      const last = page.find((child) => child.id === own[room - 1]?.id)
      return { funded, scannedTo: last?.childIndex ?? behind, isPartial: true }
    }
    if (page.length < pageMax) return { funded, scannedTo: 0, isPartial: first > 0 }
    behind = page.at(-1)?.childIndex ?? behind
  }
  return { funded, scannedTo: behind, isPartial: true }
}

/** Those of the children that may send enough, as of a block whose deposits are booked. */
async function fundedOf(ctx: Ctx, { network, token, rawAmountMin }: SweepTerms, children: readonly CandidateRow[]) {
  if (children.length === 0) return []
  const places = children.map(({ id, address }) => placeOf(ctx.tenant, { network, token }, { id, address }))
  const { snapshot, spendable } = await readFunds(ctx, network, places)
  return children.flatMap(({ id, address }, index): Funded[] => {
    const { available = 0n, frozen = 0n, reserved = 0n } = spendable[index] ?? {}
    // On Tempo a transfer under way may have to offer more for its gas, which the token pays.
    const isPaying = network.nativeCoin === null && reserved > 0n
    return isPaying || available < rawAmountMin
      ? []
      : [{ id, address, rawAmount: available, frozenRawAmount: frozen, snapshot }]
  })
}

/** The token of a sweep at one of its children. */
export function placeOf(
  tenant: Tenant,
  { network, token }: Pick<SweepTerms, 'network' | 'token'>,
  { id: walletId, address: owner }: Pick<Funded, 'id' | 'address'>,
): Place {
  return { tenant, network, walletId, owner, coin: token }
}
