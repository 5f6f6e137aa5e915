import { type Address, sameAddress } from '@purser/protocol'
import { type Auditing, appendAudit } from '../../../platform/audit.ts'
import type { Db } from '../../../platform/db/db.ts'
import { type ChildAddressId, type MasterWalletId, newId } from '../../../platform/ids.ts'
import { addToCounter, lockCounter } from '../../plans/index.ts'
import { watchAddress } from '../deposits/watch.ts'
import { fail } from '../errors.ts'
import { findTenantOfWallet } from '../policy/store.ts'
import type { DeriveAddress } from '../ports.ts'
import { insertChildAddresses, listPassedOver, lockParent } from './store.ts'

type RecoveryCtx = Auditing & { readonly db: Db; readonly deriveAddress: DeriveAddress }

/**
 * Recreates a child address whose record a restore lost: one of those that `purser admin restored` skipped. It is watched from then on.
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
    await addToCounter(tx, tenant, 'childAddresses', 'all', 1)
    await insertChildAddresses(tx, tenant, [{ ...made, createdAt: ctx.clock.now() }])
    await watchAddress({ ...ctx, tenant }, tx, { walletId: id, address, chain, network, supportedTokens })
    const details = { childAddressId: id, address, index: childIndex }
    await appendAudit({ ...ctx, tenant }, tx, { action: 'wallets.children.recover', target: walletId, details })
    return id
  })
}
