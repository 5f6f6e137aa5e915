import { isDeepStrictEqual } from 'node:util'
import type { MasterWalletId } from '../../../platform/ids.ts'
import { fail } from '../errors.ts'
import { lockMasterWallet, updateMasterWallet } from '../managed/auto-store.ts'
import { shownMasterWallet } from '../managed/managed.ts'
import type { MasterWallet, MasterWalletChange } from '../managed/schema.ts'
import type { Ctx } from '../ports.ts'
import { sweepTerms } from './sweeps.ts'

/** Changes a wallet's name, metadata and automatic sweep; an automatic sweep that could never run is refused now. */
export function changeMasterWallet(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'gasPrices' | 'settleMicroUsdMin' | 'tenant'>,
  walletId: MasterWalletId,
  change: MasterWalletChange,
): Promise<MasterWallet> {
  return ctx.db.tx(async (tx) => {
    const wallet = await lockMasterWallet(tx, ctx.tenant, walletId)
    if (wallet === undefined) throw fail('wallet-not-found')
    const { name = wallet.name, metadata = wallet.metadata, autoSweep = wallet.autoSweep } = change
    if (autoSweep !== null) sweepTerms(ctx, wallet, autoSweep, 'automatic')
    const changed = { ...wallet, name, metadata, autoSweep }
    await updateMasterWallet(tx, ctx.tenant, { ...changed, dueAt: ctx.clock.now() })
    if (isDeepStrictEqual(changed, wallet)) return shownMasterWallet(wallet)
    await ctx.audit(tx, { action: 'wallets.master.update', target: walletId, details: { name, autoSweep } })
    return shownMasterWallet(changed)
  })
}
