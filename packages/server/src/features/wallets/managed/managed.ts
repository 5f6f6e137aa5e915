import { requireNetwork } from '@purser/protocol'
import type { MasterWalletId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, pageOf } from '../../../platform/wire.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import type { MasterWallet, MasterWalletListQuery } from './schema.ts'
import { findMasterWallet, listMasterWallets, type MasterWalletRow } from './store.ts'

export async function getMasterWallet(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  walletId: MasterWalletId,
): Promise<MasterWallet> {
  return shownMasterWallet(await requireMasterWallet(ctx, walletId))
}

/** The tenant's wallet, or 404 as if it never existed. */
export async function requireMasterWallet(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  walletId: MasterWalletId,
): Promise<MasterWalletRow> {
  const wallet = await findMasterWallet(ctx.db, ctx.tenant, walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  return wallet
}

export async function pageOfMasterWallets(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: MasterWalletListQuery,
): Promise<Page<MasterWallet>> {
  const { limit, cursor } = query
  const rows = await listMasterWallets(ctx.db, ctx.tenant, query, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, limit, (row) => row.id)
  return { ...page, items: page.items.map(shownMasterWallet) }
}

export function shownMasterWallet(row: MasterWalletRow): MasterWallet {
  const { chainId, caip2 } = requireNetwork(row.network)
  const { id, address, chain, name, supportedTokens, keyVersion, autoSweep, metadata, retiredAt, createdAt } = row
  return {
    id,
    address,
    chain,
    chainId,
    network: caip2,
    name,
    provisionStatus: retiredAt === null ? 'active' : 'retired',
    supportedTokens,
    keyVersion,
    autoSweep,
    metadata,
    retiredAt,
    createdAt,
  }
}
