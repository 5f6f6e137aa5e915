import type { AccountNode } from '../../../custody/index.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import { networkFor } from '../../chains/index.ts'
import { countOrRefuse } from '../../plans/index.ts'
import { refuseUnknownTokens, refuseUnwatchable } from '../byo.ts'
import { watchAddress } from '../deposits/watch.ts'
import type { Ctx } from '../ports.ts'
import { shownMasterWallet } from './managed.ts'
import type { MasterWallet, NewMasterWallet } from './schema.ts'
import { findNextAccount, insertMasterWallet, type MasterWalletRow, takeAccount } from './store.ts'

/**
 * The timeout of the derivation. It ends well before another request can take over the Idempotency-Key, so that one key
 * never creates two wallets.
 */
const deriveMsMax = 20_000

/** Creates a wallet on the tenant's next account. */
export async function createMasterWallet(ctx: Ctx, request: NewMasterWallet): Promise<MasterWallet> {
  const network = networkFor(request.chain, ctx.tenant.environment)
  refuseUnknownTokens(network, request.supportedTokens)
  refuseUnwatchable(ctx, network)
  const made = await onNextAccount(ctx, {
    before: (tx) => countOrRefuse(tx, ctx, 'managedWallets'),
    insert: (tx, derived) => insertDerived(ctx, tx, request, derived),
  })
  return shownMasterWallet(made)
}

/** An account of the tenant's seed and its public node. */
export interface Derived {
  readonly account: number
  readonly node: AccountNode
}

/** Work in the transaction that takes an account: before it is taken, and with it. */
export interface AccountWork<T> {
  readonly before?: (tx: Tx) => Promise<void>
  readonly insert: (tx: Tx, derived: Derived) => Promise<T>
}

/**
 * Takes the tenant's next account for the inserted row. Custody returns the account's public node before the transaction, which must not
 * wait for a key service; if another process takes that account meanwhile, the next one is requested. Only the transaction assigns an
 * account, so none is skipped and none is assigned twice; not by a restored database either, since the response is sent when the witness
 * covers the wallet.
 */
export async function onNextAccount<T>(
  ctx: Pick<Ctx, 'db' | 'tenant' | 'walletKeys' | 'witness'>,
  work: AccountWork<T>,
): Promise<T> {
  const until = performance.now() + deriveMsMax
  while (performance.now() < until) {
    const account = await findNextAccount(ctx.db, ctx.tenant)
    const node = await ctx.walletKeys.accountNode(ctx.tenant, account)
    const made = await takeIfNext(ctx, work, { account, node })
    if (made !== undefined) return made
  }
  throw failPlatform('service-unavailable')
}

/** Thrown to roll back if another request took the account. */
class AccountTaken extends Error {}

async function takeIfNext<T>(
  ctx: Pick<Ctx, 'db' | 'tenant' | 'witness'>,
  work: AccountWork<T>,
  derived: Derived,
): Promise<T | undefined> {
  try {
    return await ctx.db.tx(async (tx) => {
      await work.before?.(tx)
      if ((await takeAccount(tx, ctx.tenant)) !== derived.account) throw new AccountTaken()
      tx.beforeReturn(ctx.witness.cover)
      return work.insert(tx, derived)
    })
  } catch (error) {
    if (error instanceof AccountTaken) return undefined
    throw error
  }
}

async function insertDerived(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'deriveAddress' | 'idempotency' | 'random' | 'tenant'>,
  tx: Tx,
  request: NewMasterWallet,
  derived: Derived,
): Promise<MasterWalletRow> {
  const wallet = walletOn(ctx, request, derived)
  await insertMasterWallet(tx, ctx.tenant, wallet)
  await watchAddress(ctx, tx, { ...wallet, walletId: wallet.id })
  const { account, address, chain, network } = wallet
  const details = { address, chain, network, account }
  await ctx.audit(tx, { action: 'wallets.master.create', target: wallet.id, details })
  await ctx.idempotency?.commit(tx, wallet.id)
  return wallet
}

/** Creates a wallet with the first key of the account. */
export function walletOn(
  ctx: Pick<Ctx, 'clock' | 'deriveAddress' | 'random' | 'tenant'>,
  request: NewMasterWallet,
  { account, node }: Derived,
): MasterWalletRow {
  const address = ctx.deriveAddress(node, 0)
  // One seed in 2^127 has such an account; BIP-44 defines no alternative address.
  if (address === undefined) throw new Error('the account has no first key')
  return {
    id: newId('mwt', ctx),
    account,
    address,
    chain: request.chain,
    network: networkFor(request.chain, ctx.tenant.environment).name,
    name: request.name ?? null,
    supportedTokens: request.supportedTokens,
    keyVersion: node.keyVersion,
    publicKey: Uint8Array.from(node.publicKey),
    chainCode: Uint8Array.from(node.chainCode),
    autoSweep: null,
    metadata: request.metadata ?? {},
    retiredAt: null,
    createdAt: ctx.clock.now(),
  }
}
