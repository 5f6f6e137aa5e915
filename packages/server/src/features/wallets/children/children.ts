import { isDeepStrictEqual } from 'node:util'
import { type Address, type HdCurve, hdChildAddress, sameAddress } from '@purser/protocol'
import { z } from 'zod'
import { type Auditing, appendAudit } from '../../../platform/audit.ts'
import type { Db } from '../../../platform/db/db.ts'
import { type ChildAddressId, type MasterWalletId, newId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openNumberCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { addToCounter, countOrRefuse, lockCounter } from '../../plans/index.ts'
import { holdReceived } from '../deposits/recovered.ts'
import { watchAddress, watchAddresses } from '../deposits/watch.ts'
import { fail } from '../errors.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import { MasterWalletParams } from '../managed/schema.ts'
import { findTenantOfWallet } from '../policy/store.ts'
import type { Ctx, DeriveAddress } from '../ports.ts'
import type { WalletChange } from '../schema.ts'
import type { ChildAddress, ChildAddressParams, NewChildAddresses } from './schema.ts'
import {
  type ChildAddressRow,
  findChildAddress,
  insertChildAddresses,
  listChildAddresses,
  listChildrenBetween,
  listPassedOver,
  lockChildAddress,
  lockParent,
  markDerived,
  type ParentRow,
  updateChildAddress,
} from './store.ts'

/** The last index that BIP-32 derives without the private parent. */
const indexMax = 0x7fff_ffff

/**
 * Derives the next children of a wallet from its public node: no seed is opened. The master's row is locked from the read of its next index
 * to the commit, so that concurrent requests get separate ranges of indices without a gap. The response is sent when the witness covers
 * them: a database that lost them derives nothing.
 */
export function createChildAddresses(
  ctx: Ctx,
  walletId: MasterWalletId,
  request: NewChildAddresses,
): Promise<ChildAddress | ChildAddress[]> {
  ctx.witness.requireCurrent()
  return ctx.db.tx(async (tx) => {
    tx.beforeReturn(ctx.witness.cover)
    const count = request.count ?? 1
    await countOrRefuse(tx, ctx, 'childAddresses', count)
    const parent = await lockParent(tx, ctx.tenant, walletId)
    if (parent === undefined) throw fail('wallet-not-found')
    if (parent.retiredAt !== null) throw fail('wallet-retired')
    const derived = deriveNext(ctx.deriveAddress, parent, count)
    const last = derived.at(-1)
    if (last === undefined) throw fail('child-addresses-exhausted')
    const children = childrenOf(ctx, { walletId, parent, derived, request })
    await markDerived(tx, ctx.tenant, walletId, last.index + 1)
    await insertChildAddresses(tx, ctx.tenant, children)
    await watchAddresses(ctx, tx, watchesOf(parent, children))
    const details = { count: children.length, firstIndex: derived[0]?.index, lastIndex: last.index }
    await ctx.audit(tx, { action: 'wallets.children.create', target: walletId, details })
    const shown = children.map(shownChildAddress)
    return request.count === undefined && shown[0] !== undefined ? shown[0] : shown
  })
}

interface Derived {
  readonly index: number
  readonly address: Address
}

/** The next accounts by index. An index without a valid BIP-32 key is skipped. Empty if too few indices remain. */
export function deriveNext(deriveAddress: DeriveAddress, parent: ParentRow, count: number): Derived[] {
  const derived: Derived[] = []
  for (let index = parent.nextChild; derived.length < count; index++) {
    if (index > indexMax) return []
    const address = deriveAddress(parent, index)
    if (address !== undefined) derived.push({ index, address })
  }
  return derived
}

function childrenOf(
  ctx: Pick<Ctx, 'clock' | 'random'>,
  made: {
    readonly walletId: MasterWalletId
    readonly parent: ParentRow
    readonly derived: readonly Derived[]
    readonly request: NewChildAddresses
  },
): ChildAddressRow[] {
  const { walletId, parent, derived, request } = made
  const shared = {
    masterWalletId: walletId,
    account: parent.account,
    name: request.name ?? null,
    metadata: request.metadata ?? {},
    createdAt: ctx.clock.now(),
  }
  return derived.map(({ index, address }) => ({ ...shared, id: newId('cad', ctx), childIndex: index, address }))
}

/** Watches for children on the same networks as their master. */
function watchesOf({ chain, network, supportedTokens }: ParentRow, children: readonly ChildAddressRow[]) {
  return children.map(({ id, address }) => ({ walletId: id, address, chain, network, supportedTokens }))
}

export async function getChildAddress(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  params: z.output<typeof ChildAddressParams>,
): Promise<ChildAddress> {
  return shownChildAddress(await requireChildAddress(ctx, params))
}

export async function requireChildAddress(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  params: z.output<typeof ChildAddressParams>,
): Promise<ChildAddressRow> {
  const child = await findChildAddress(ctx.db, ctx.tenant, params)
  if (child === undefined) throw fail('child-address-not-found')
  return child
}

/** Changes the name and the metadata of a child. */
export function changeChildAddress(
  ctx: Pick<Ctx, 'audit' | 'db' | 'tenant'>,
  params: z.output<typeof ChildAddressParams>,
  change: WalletChange,
): Promise<ChildAddress> {
  return ctx.db.tx(async (tx) => {
    const child = await lockChildAddress(tx, ctx.tenant, params)
    if (child === undefined) throw fail('child-address-not-found')
    const { name = child.name, metadata = child.metadata } = change
    if (isDeepStrictEqual({ ...child, name, metadata }, child)) return shownChildAddress(child)
    await updateChildAddress(tx, ctx.tenant, { id: child.id, name, metadata })
    await ctx.audit(tx, { action: 'wallets.children.update', target: child.id, details: { name } })
    return shownChildAddress({ ...child, name, metadata })
  })
}

export async function pageOfChildAddresses(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  walletId: MasterWalletId,
  query: z.output<typeof PageQuery>,
): Promise<Page<ChildAddress>> {
  await requireMasterWallet(ctx, walletId)
  const page = { limit: query.limit, below: openNumberCursor(query.cursor, 9_999_999_999n) }
  const rows = await listChildAddresses(ctx.db, ctx.tenant, walletId, page)
  const shownOf = pageOf(rows, query.limit, (row) => String(row.childIndex))
  return { ...shownOf, items: shownOf.items.map(shownChildAddress) }
}

function shownChildAddress(row: ChildAddressRow): ChildAddress {
  const { id, address, masterWalletId, name, metadata, createdAt } = row
  return { id, address, derivationPath: pathOf(row), masterWalletId, name, metadata, createdAt }
}

/** BIP-44 path of the account's key below the seed. */
function pathOf({ account, childIndex }: Pick<ChildAddressRow, 'account' | 'childIndex'>): string {
  return `m/44'/60'/${account}'/0/${childIndex}`
}

type RecoveryCtx = Auditing & { readonly db: Db; readonly deriveAddress: DeriveAddress }

/**
 * Recreates a child address whose record a restore lost: one of those that `purser admin restored` skipped. It is watched from then on, and what it received before
 * is on hold.
 * Undefined if the address is not one of them. Throws `wallet-not-found`. Idempotent: an address with a record is not one of them.
 */
export function recoverChildAddress(
  ctx: RecoveryCtx,
  walletId: MasterWalletId,
  address: Address,
): Promise<ChildAddressId | undefined> {
  return ctx.db.tx(async (tx) => {
    const tenant = await findTenantOfWallet(tx, walletId)
    if (tenant === undefined) throw fail('wallet-not-found')
    await lockCounter(tx, tenant, 'childAddresses', 'all')
    const parent = await lockParent(tx, tenant, walletId)
    if (parent === undefined) throw fail('wallet-not-found')
    const passedOver = await listPassedOver(tx, tenant, walletId)
    const childIndex = passedOver.find((index) => {
      const derived = ctx.deriveAddress(parent, index)
      return derived !== undefined && sameAddress(derived, address)
    })
    if (childIndex === undefined) return undefined
    const id = newId('cad', ctx)
    const { account, chain, network, supportedTokens } = parent
    const made = { id, masterWalletId: walletId, account, childIndex, address, name: null, metadata: {} }
    await addToCounter(tx, { tenant, kind: 'childAddresses', period: 'all', n: 1 })
    await insertChildAddresses(tx, tenant, [{ ...made, createdAt: ctx.clock.now() }])
    await watchAddress({ ...ctx, tenant }, tx, { walletId: id, address, chain, network, supportedTokens })
    await holdReceived(tx, tenant, id)
    const details = { childAddressId: id, address, index: childIndex }
    await appendAudit({ ...ctx, tenant }, tx, { action: 'wallets.children.recover', target: walletId, details })
    return id
  })
}

class NoChild extends Error {}

/** Derives accounts with this curve. Returns undefined for an invalid sum; any other fault is thrown. */
export function createDeriveAddress(curve: HdCurve): DeriveAddress {
  const telling: HdCurve = {
    ...curve,
    addToPublicKey(publicKey, tweak) {
      const sum = curve.addToPublicKey(publicKey, tweak)
      if (sum === undefined) throw new NoChild()
      return sum
    },
  }
  return (node, index) => {
    try {
      return hdChildAddress(node, index, telling)
    } catch (error) {
      if (error instanceof NoChild) return undefined
      throw error
    }
  }
}

const Made = z.array(z.object({ derivationPath: z.string() }))

/**
 * Returns the key with which `childrenAt` finds the children that one request derived: their wallet, and their first
 * and last index.
 */
export function childrenResourceKey(response: unknown, params: unknown): string {
  const made = Made.parse(response)
  const [first, last] = [made[0], made.at(-1)].map((child) => child?.derivationPath.split('/').at(-1))
  return `${MasterWalletParams.parse(params).id}/${first}/${last}`
}

/** Returns the children in the order of their indices. */
export async function childrenAt(ctx: Pick<Ctx, 'db' | 'tenant'>, place: string): Promise<ChildAddress[]> {
  const [walletId, first, last] = place.split('/')
  const { id } = MasterWalletParams.parse({ id: walletId })
  const children = await listChildrenBetween(ctx.db, ctx.tenant, id, { first: Number(first), last: Number(last) })
  return children.map(shownChildAddress)
}
