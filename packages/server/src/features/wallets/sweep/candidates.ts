import type { Address } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import type { ChildAddressId } from '../../../platform/ids.ts'
import { failNamed } from './errors.ts'
import { listFrozenAmounts, listUnscreenedAmounts } from './frozen-store.ts'
import { listLanes } from './paying-store.ts'
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
  /** On Tempo: whatever takes this nonce of the child's or a later one came after its balance was read. */
  readonly nextNonce: bigint
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

/**
 * Children with the nonces that they give next. On Tempo without those that have a transfer which no block shows yet: what they hold is
 * promised, and they are left to the next sweep. Read before the balance, so that what a block takes in between is missed by neither.
 */
async function resting(
  ctx: Ctx,
  { network }: SweepTerms,
  children: readonly CandidateRow[],
): Promise<(CandidateRow & Pick<Funded, 'nextNonce'>)[]> {
  if (network.nativeCoin !== null) return children.map((child) => ({ ...child, nextNonce: 0n }))
  const addresses = children.map(({ address }) => address)
  const lanes = new Map((await listLanes(ctx.db, network.name, addresses)).map((lane) => [lane.address, lane]))
  return children.flatMap((child) => {
    const { nextNonce = 0n, isPaying = false } = lanes.get(child.address) ?? {}
    return isPaying ? [] : [{ ...child, nextNonce }]
  })
}

async function fundedOf(ctx: Ctx, terms: SweepTerms, asked: readonly CandidateRow[]): Promise<Funded[]> {
  const children = await resting(ctx, terms, asked)
  if (children.length === 0) return []
  const questions = children.map(({ address }) => ({ account: address, tokens: [terms.token.address] }))
  const holdings = await ctx.chains.on(terms.network).holdings(questions)
  const held = children.map((child, index) => ({ child, raw: holdings[index]?.tokens[0] ?? 0n }))
  const enough = held.filter(({ raw }) => raw >= terms.rawAmountMin)
  const { network, token } = terms
  const place = { network: network.name, asset: token.address, walletIds: enough.map(({ child }) => child.id) }
  const frozen = await listFrozenAmounts(ctx.db, ctx.tenant, place)
  const unscreened = await listUnscreenedAmounts(ctx.db, ctx.tenant, place)
  return enough.flatMap(({ child: { id, address, nextNonce }, raw }) => {
    const frozenRawAmount = frozen.get(id) ?? 0n
    const rawAmount = raw - frozenRawAmount - (unscreened.get(id) ?? 0n)
    return rawAmount >= terms.rawAmountMin ? [{ id, address, rawAmount, frozenRawAmount, nextNonce }] : []
  })
}
