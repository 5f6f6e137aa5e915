import type { AccountNode } from '../../../custody/index.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform } from '../../../platform/errors.ts'
import { newId } from '../../../platform/ids.ts'
import { networkFor } from '../../chains/index.ts'
import { countOrRefuse } from '../../plans/index.ts'
import { refuseUnknownTokens } from '../byo.ts'
import { watchAddress } from '../deposits/watch.ts'
import { shownMasterWallet } from './managed.ts'
import type { MasterWallet, NewMasterWallet } from './schema.ts'
import { findNextAccount, insertMasterWallet, type MasterWalletRow, takeAccount } from './store.ts'

/** Gives up well before the request's Idempotency-Key could be taken over, so that one key never makes two wallets. */
const deriveMsMax = 20_000

/**
 * Makes a wallet on the tenant's next account. Custody is asked for the account's public node before the transaction, which
 * must wait for no key service; should another process take that account meanwhile, the next one is asked for. Only the
 * transaction gives an account away, so none is skipped and none is given twice.
 */
export async function createMasterWallet(ctx: Ctx, request: NewMasterWallet): Promise<MasterWallet> {
  refuseUnknownTokens(networkFor(request.chain, ctx.tenant.environment), request.supportedTokens)
  const until = performance.now() + deriveMsMax
  while (performance.now() < until) {
    const account = await findNextAccount(ctx.db, ctx.tenant)
    const node = await ctx.walletKeys.accountNode(ctx.tenant, account)
    const made = await takeIfNext(ctx, request, { account, node })
    if (made !== undefined) return shownMasterWallet(made)
  }
  throw failPlatform('service-unavailable')
}

interface Derived {
  readonly account: number
  readonly node: AccountNode
}

/** Thrown to roll back when the account went to somebody else. */
class Taken extends Error {}

async function takeIfNext(ctx: Ctx, request: NewMasterWallet, derived: Derived): Promise<MasterWalletRow | undefined> {
  try {
    return await ctx.db.tx((tx) => insertDerived(ctx, tx, request, derived))
  } catch (error) {
    if (error instanceof Taken) return undefined
    throw error
  }
}

async function insertDerived(
  ctx: Ctx,
  tx: Tx,
  request: NewMasterWallet,
  { account, node }: Derived,
): Promise<MasterWalletRow> {
  await countOrRefuse(tx, ctx, 'managedWallets')
  if ((await takeAccount(tx, ctx.tenant)) !== account) throw new Taken()
  const wallet = walletOn(ctx, request, { account, node })
  await insertMasterWallet(tx, ctx.tenant, wallet)
  await watchAddress(ctx, tx, { ...wallet, walletId: wallet.id })
  const { address, chain, network } = wallet
  const details = { address, chain, network, account }
  await ctx.audit(tx, { action: 'wallets.master.create', target: wallet.id, details })
  await ctx.idempotency?.commit(tx, wallet.id)
  return wallet
}

function walletOn(ctx: Ctx, request: NewMasterWallet, { account, node }: Derived): MasterWalletRow {
  const address = ctx.deriveAddress(node, 0)
  // One seed in 2^127 has such an account; BIP-44 has no other address to give instead.
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
    createdAt: ctx.clock.now(),
  }
}
