import { type Address, chainNameOf, formatAmount, type Network, networks, requireNetwork } from '@purser/protocol'
import { fail as failChain } from '../../../chain/errors.ts'
import type { Chain } from '../../../chain/port.ts'
import type { MasterWalletId } from '../../../platform/ids.ts'
import { addToCounter, countOrRefuse, lockCounter, periodOf } from '../../plans/index.ts'
import { fail } from '../errors.ts'
import type { Ctx } from '../ports.ts'
import { hasOpenMovements, listUsedChildren, lockMasterWallet, type UsedChild } from './auto-store.ts'
import { requireMasterWallet, shownMasterWallet } from './managed.ts'
import type { MasterWallet } from './schema.ts'
import { type MasterWalletRow, markRestored, markRetired } from './store.ts'

/** Addresses whose balances one call reads. */
const addressesPerRead = 200
const gasOfCoinTransfer = 21_000n
/** Longest wait, in milliseconds, until the deposits of the newest block are booked. */
const bookingMsMax = 5_000

/**
 * Retires a wallet without open movements and without a balance except frozen money, with its children, and frees its place in the plan. Its addresses stay watched,
 * so that later deposits are reported, and it can be restored to move that money. Idempotent.
 */
export async function retireMasterWallet(
  ctx: Pick<Ctx, 'audit' | 'chains' | 'clock' | 'db' | 'deposits' | 'tenant'>,
  walletId: MasterWalletId,
): Promise<void> {
  const wallet = await requireMasterWallet(ctx, walletId)
  if (wallet.retiredAt !== null) return
  const hasFrozen = await refuseFunded(ctx, wallet)
  await ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const period = periodOf('managedWallets', now)
    await lockCounter(tx, ctx.tenant, 'managedWallets', period)
    const present = await lockMasterWallet(tx, ctx.tenant, walletId)
    if (present === undefined) throw fail('wallet-not-found')
    if (present.retiredAt !== null) return
    // Transfers, withdrawals and sweeps are stored under the lock of this row.
    if (await hasOpenMovements(tx, ctx.tenant, present, networks.filter(isOf(ctx))))
      throw fail('wallet-not-empty', { holdings: [] })
    await markRetired(tx, ctx.tenant, walletId, { at: now, hasFrozen })
    await addToCounter(tx, { tenant: ctx.tenant, kind: 'managedWallets', period, n: -1 })
    const details = { address: wallet.address, hasFrozen }
    await ctx.audit(tx, { action: 'wallets.master.retire', target: walletId, details })
  })
}

/** Restores a retired wallet, if the plan has a free place. Idempotent. */
export function restoreMasterWallet(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'publish' | 'tenant' | 'upgradeUrl'>,
  walletId: MasterWalletId,
): Promise<MasterWallet> {
  return ctx.db.tx(async (tx) => {
    await lockCounter(tx, ctx.tenant, 'managedWallets', periodOf('managedWallets', ctx.clock.now()))
    const wallet = await lockMasterWallet(tx, ctx.tenant, walletId)
    if (wallet === undefined) throw fail('wallet-not-found')
    if (wallet.retiredAt === null) return shownMasterWallet(wallet)
    await countOrRefuse(tx, ctx, 'managedWallets')
    await markRestored(tx, ctx.tenant, walletId)
    await ctx.audit(tx, { action: 'wallets.master.restore', target: walletId, details: { address: wallet.address } })
    return shownMasterWallet({ ...wallet, retiredAt: null })
  })
}

/** Whether the addresses of the tenant receive money on a network. */
function isOf({ tenant }: Pick<Ctx, 'tenant'>): (network: Network) => boolean {
  return ({ isTestnet }) => isTestnet === (tenant.environment === 'test')
}

/** Refuses a wallet with a balance on its network or another that the deployment has a node for, except frozen money. Returns whether frozen money stays. */
async function refuseFunded(
  ctx: Pick<Ctx, 'chains' | 'db' | 'deposits' | 'tenant'>,
  wallet: MasterWalletRow,
): Promise<boolean> {
  const own = requireNetwork(wallet.network)
  const others = ctx.chains.configured.filter(isOf(ctx)).filter(({ name }) => name !== own.name)
  const found = await Promise.all([own, ...others].map((network) => refuseFundedOn(ctx, wallet, network)))
  return found.includes(true)
}

/**
 * Refuses a wallet with a balance as of the latest block of a network, except frozen money: the master in all known tokens, and every child that ever had a transaction
 * there up to that block. Returns whether frozen money stays. Money that arrives after the read is a deposit of a retired wallet. Throws `chain-unavailable` while
 * deposits of that block are not booked.
 */
async function refuseFundedOn(
  ctx: Pick<Ctx, 'chains' | 'db' | 'deposits' | 'tenant'>,
  wallet: MasterWalletRow,
  network: Network,
): Promise<boolean> {
  const chain = ctx.chains.on(network)
  const [dust, newest] = await Promise.all([coinDustOf(network, chain), chain.blocks.newestBlock()])
  if (newest === undefined) throw failChain('chain-unavailable', {}, new Error('too few nodes agree on a block'))
  const { highest: block } = newest
  let hasFrozen = await refuseHoldings(ctx, chain, { dust, block }, [wallet])
  // A child has a transaction once its first deposit is booked.
  if (!(await ctx.deposits.isBookedInTime(ctx.db, network.name, { block, msMax: bookingMsMax })))
    throw failChain('chain-unavailable', {}, new Error('deposits of the newest block are not booked yet'))
  let after = 0
  for (;;) {
    const children = await listUsedChildren(ctx.db, ctx.tenant, wallet.id, {
      network: network.name,
      after,
      limit: addressesPerRead,
    })
    const last = children.at(-1)
    if (last === undefined) return hasFrozen
    if (await refuseHoldings(ctx, chain, { dust, block }, children)) hasFrozen = true
    after = last.childIndex
  }
}

/** Coin, in the smallest unit, that costs more to move than it is worth: nobody can bring a wallet to exactly zero. */
export async function coinDustOf(network: Network, chain: Chain): Promise<bigint> {
  if (network.nativeCoin === null) return 0n
  const { maxFee, l1Fee } = await chain.offeredFees()
  return maxFee * gasOfCoinTransfer + l1Fee
}

interface Holding {
  readonly wallet: UsedChild | MasterWalletRow
  readonly coin: { readonly symbol: string; readonly decimals: number }
  /** Undefined for the native coin. */
  readonly token: Address | undefined
  readonly raw: bigint
}

/** Refuses wallets with more than frozen money and worthless coin; returns whether any has frozen money. */
async function refuseHoldings(
  ctx: Pick<Ctx, 'db' | 'deposits' | 'tenant'>,
  chain: Chain,
  { dust, block }: { readonly dust: bigint; readonly block: bigint },
  wallets: readonly (UsedChild | MasterWalletRow)[],
): Promise<boolean> {
  const { tokens, nativeCoin } = chain.network
  const addresses = tokens.map(({ address }) => address)
  const read = await chain.agreedHoldings(wallets.map(({ address: account }) => ({ account, tokens: addresses })))
  const holdings = wallets.flatMap((wallet, at): Holding[] => {
    const { native = 0n, tokens: amounts = [] } = read[at] ?? {}
    const coin =
      nativeCoin === null || native <= dust ? [] : [{ wallet, coin: nativeCoin, token: undefined, raw: native }]
    const ofTokens = tokens.map((token, index) => {
      return { wallet, coin: token, token: token.address, raw: amounts[index] ?? 0n }
    })
    return [...coin, ...ofTokens.filter(({ raw }) => raw > 0n)]
  })
  const frozen = await frozenOf(ctx, chain.network, holdings, block)
  const free = holdings.filter(({ raw }, index) => raw > (frozen[index] ?? 0n))
  if (free.length === 0) return holdings.length > 0
  throw fail('wallet-not-empty', {
    holdings: free.slice(0, 10).map(({ wallet: { id: walletId, address }, coin: { symbol, decimals }, raw }) => {
      const formattedBalance = formatAmount(raw, decimals)
      return { walletId, address, chain: chainNameOf(chain.network), tokenSymbol: symbol, formattedBalance }
    }),
  })
}

/** The frozen amount of each holding, as booked up to a block. */
async function frozenOf(
  { db, deposits, tenant }: Pick<Ctx, 'db' | 'deposits' | 'tenant'>,
  network: Network,
  holdings: readonly Holding[],
  upTo: bigint,
): Promise<readonly bigint[]> {
  const questions = holdings.flatMap(({ wallet, token }) =>
    token === undefined ? [] : [{ tenant, walletId: wallet.id, network: network.name, token, upTo }],
  )
  const amounts = questions.length === 0 ? [] : [...(await deposits.amountsOnHold(db, questions))]
  return holdings.map(({ token }) => (token === undefined ? 0n : (amounts.shift()?.frozen ?? 0n)))
}
