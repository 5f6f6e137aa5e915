import { isDeepStrictEqual } from 'node:util'
import { type Address, type Hex, type Network, selectorOf, tokenBySymbol } from '@purser/protocol'
import type { z } from 'zod'
import type { Chain } from '../../chain/port.ts'
import { isProblem } from '../../platform/errors.ts'
import { type ByoWalletId, newId } from '../../platform/ids.ts'
import type { Page } from '../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../platform/wire.ts'
import { lostAt, networkFor, refuseServiceAddress } from '../chains/index.ts'
import { addToCounter, countOrRefuse, lockCounter, periodOf } from '../plans/index.ts'
import { unwatchAddress, type WatchHead, watchByoAddress } from './deposits/watch.ts'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'
import type { ByoWallet, NewByoWallet, WalletChange } from './schema.ts'
import {
  type ByoWalletRow,
  findByoWallet,
  findByoWalletAt,
  insertByoWallet,
  listByoWallets,
  lockByoWallet,
  markDeleted,
  updateByoWallet,
} from './store.ts'

/**
 * Registers a wallet of the customer. The counter is incremented first and the row is inserted under it, so that of any number of
 * concurrent requests as many succeed as the plan permits, and one per address. A duplicate address is reported as such even if the plan is
 * full.
 */
export async function registerByoWallet(ctx: Ctx, request: NewByoWallet): Promise<ByoWallet> {
  const { environment } = ctx.tenant
  const network = networkFor(request.chain, environment)
  refuseUnknownTokens(network, request.supportedTokens)
  refuseUnwatchable(ctx, network)
  refuseServiceAddress(ctx, request.address, '/address')
  await refuseToken(ctx, network, request.address)
  return ctx.db.tx(async (tx) => {
    const wallet: ByoWalletRow = {
      id: newId('byw', ctx),
      address: request.address,
      chain: request.chain,
      network: network.name,
      name: request.name ?? null,
      supportedTokens: request.supportedTokens,
      metadata: request.metadata ?? {},
      amlStatus: 'pending',
      createdAt: ctx.clock.now(),
    }
    await lockCounter(tx, ctx.tenant, 'byoWallets', periodOf('byoWallets', wallet.createdAt))
    const inserted = await insertByoWallet(tx, ctx.tenant, wallet)
    if (!inserted) throw alreadyRegistered(await findByoWalletAt(tx, ctx.tenant, wallet))
    await countOrRefuse(tx, ctx, 'byoWallets')
    await watchByoAddress(ctx, tx, { ...wallet, walletId: wallet.id })
    const details = { address: wallet.address, chain: wallet.chain, network: wallet.network }
    await ctx.audit(tx, { action: 'wallets.byo.create', target: wallet.id, details })
    await ctx.idempotency?.commit(tx, wallet.id)
    return shown(wallet)
  })
}

/** The detail names the wallet, so that a setup that runs again can go on with it. */
function alreadyRegistered(wallet: ByoWalletRow | undefined): Error {
  const detail = wallet && `The address is registered on this network already, as ${wallet.id}.`
  return fail('wallet-already-registered', detail === undefined ? {} : { detail })
}

/**
 * Refuses a live wallet on a network without a node, since its payments would never be detected. In the test environment stubs pay without
 * a chain, so a wallet there needs none.
 */
export function refuseUnwatchable({ tenant, chains }: Pick<Ctx, 'tenant' | 'chains'>, network: Network): void {
  if (tenant.environment === 'live') chains.on(network)
}

/** Throws a 422 that names every symbol without a token on the network. */
export function refuseUnknownTokens(network: Network, symbols: readonly string[]): void {
  const known = network.tokens.map((token) => token.symbol).join(', ')
  const errors = symbols.flatMap((symbol, index) =>
    tokenBySymbol(network, symbol) === undefined
      ? [{ path: `/supportedTokens/${index}`, message: `is not a token of ${network.name}, which has ${known}` }]
      : [],
  )
  if (errors.length > 0) throw fail('token-not-supported', { errors })
}

export async function getByoWallet(ctx: Pick<Ctx, 'db' | 'tenant'>, walletId: ByoWalletId): Promise<ByoWallet> {
  const wallet = await findByoWallet(ctx.db, ctx.tenant, walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  return shown(wallet)
}

export async function pageOfByoWallets(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: z.output<typeof PageQuery>,
): Promise<Page<ByoWallet>> {
  const rows = await listByoWallets(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  const page = pageOf(rows, query.limit, (row) => row.id)
  return { ...page, items: page.items.map(shown) }
}

/** Changes the name and the metadata of a wallet. */
export function changeByoWallet(
  ctx: Pick<Ctx, 'audit' | 'db' | 'tenant'>,
  walletId: ByoWalletId,
  change: WalletChange,
): Promise<ByoWallet> {
  return ctx.db.tx(async (tx) => {
    const wallet = await lockByoWallet(tx, ctx.tenant, walletId)
    if (wallet === undefined) throw fail('wallet-not-found')
    const { name = wallet.name, metadata = wallet.metadata } = change
    if (isDeepStrictEqual({ ...wallet, name, metadata }, wallet)) return shown(wallet)
    await updateByoWallet(tx, ctx.tenant, { id: walletId, name, metadata })
    await ctx.audit(tx, { action: 'wallets.byo.update', target: walletId, details: { name } })
    return shown({ ...wallet, name, metadata })
  })
}

/** Stops watching the address and frees its place in the plan; the address may be registered again. */
export async function deleteByoWallet(
  ctx: Pick<Ctx, 'audit' | 'chains' | 'clock' | 'db' | 'tenant'>,
  walletId: ByoWalletId,
): Promise<void> {
  const wallet = await findByoWallet(ctx.db, ctx.tenant, walletId)
  const head = await headOf(ctx, wallet)
  return ctx.db.tx(async (tx) => {
    const now = ctx.clock.now()
    const period = periodOf('byoWallets', now)
    await lockCounter(tx, ctx.tenant, 'byoWallets', period)
    if (!(await markDeleted(tx, ctx.tenant, walletId, now))) throw fail('wallet-not-found')
    await unwatchAddress(ctx, tx, { walletId, head })
    await addToCounter(tx, { tenant: ctx.tenant, kind: 'byoWallets', period, n: -1 })
    await ctx.audit(tx, { action: 'wallets.byo.delete', target: walletId })
  })
}

/** The newest block of the wallet's network; undefined while no majority of the nodes agrees on one, which does not prevent deletion. */
async function headOf(ctx: Pick<Ctx, 'chains'>, wallet: ByoWalletRow | undefined): Promise<WatchHead | undefined> {
  const network = ctx.chains.configured.find(({ name }) => name === wallet?.network)
  if (network === undefined) return undefined
  return ctx.chains
    .on(network)
    .blocks.newestBlock()
    .then((head) => head && { ...head, network })
    .catch((error: unknown) => {
      if (isProblem(error, 'chain-unavailable')) return undefined
      throw error
    })
}

function shown(row: ByoWalletRow): ByoWallet {
  const { id, address, chain, name, supportedTokens, metadata, amlStatus, createdAt } = row
  const isActive = amlStatus !== 'flagged'
  return { id, address, chain, name, isActive, amlStatus, supportedTokens, metadata, createdAt }
}

const decimalsCall = selectorOf('decimals()')
const supplyCall = selectorOf('totalSupply()')

/**
 * Throws a 422 for an address that is a token's contract on its network, whether the service knows the token or not. Other contracts are
 * accepted as smart accounts. Nothing is refused if the node does not respond or the network has none.
 */
async function refuseToken(ctx: Pick<Ctx, 'chains'>, network: Network, address: Address): Promise<void> {
  if (!ctx.chains.configured.some(({ name }) => name === network.name)) return
  const chain = ctx.chains.on(network)
  if (await isToken(chain, address).catch(isNodeFault)) throw lostAt('/address')
}

async function isToken(chain: Chain, address: Address): Promise<boolean> {
  if ((await chain.code(address)) === '0x') return false
  const decimals = await chain.agreedCall(address, decimalsCall)
  // The supply of some tokens differs with each block, and so between nodes.
  const supply = await chain.agreedCall(address, supplyCall, (response) => String(isWord(response)))
  return isWord(decimals) && isWord(supply) && BigInt(decimals) <= 255n
}

function isWord(response: Hex): boolean {
  return response.length === 66
}

/** A call that the contract refuses looks like a node fault: such a contract is not a token. */
function isNodeFault(error: unknown): false {
  if (isProblem(error, 'chain-unavailable')) return false
  throw error
}
