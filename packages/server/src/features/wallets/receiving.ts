import { requireNetwork } from '@purser/protocol'
import { batch } from '../../platform/db/batch.ts'
import { isId } from '../../platform/ids.ts'
import { failNamed } from './errors.ts'
import { listManagedAt, listRequestedManaged, type ManagedReceiver } from './managed/store.ts'
import type { Ctx, Deps, ReceivingWallet, WalletDirectory, WalletId } from './ports.ts'
import {
  type ByoWalletRow,
  listRequestedWallets,
  listWalletsAt,
  type PlaceQuestion,
  type WalletQuestion,
} from './store.ts'

/** Looks wallets up for payments, those of concurrent requests in one statement; nothing is cached. */
export function createWalletDirectory(deps: Pick<Deps, 'db'>): WalletDirectory {
  const find = batch<WalletQuestion, ReceivingWallet | undefined>(
    { itemsMax: 256, batchesMax: 1 },
    async (questions) => {
      const distinct = [...new Map(questions.map((question) => [nameOf(question), question])).values()]
      const [own, managed] = [distinct.filter(asksForByo), distinct.filter((question) => !asksForByo(question))]
      const found = new Map([
        ...(own.length === 0 ? [] : await listRequestedWallets(deps.db, own)).map(namedByo),
        ...(managed.length === 0 ? [] : await listRequestedManaged(deps.db, managed)).map(namedManaged),
      ])
      return questions.map((question) => found.get(nameOf(question)))
    },
  )
  const findAt = batch<PlaceQuestion, ReceivingWallet | undefined>({ itemsMax: 256, batchesMax: 1 }, async (places) => {
    const [own, managed] = await Promise.all([listWalletsAt(deps.db, places), listManagedAt(deps.db, places)])
    // A managed address takes precedence over the same address registered by a customer.
    const found = new Map([
      ...own.map((row) => [placeOf({ tenant: row, ...row }), receiving(row)] as const),
      ...managed.map((row) => [placeOf({ tenant: row, ...row }), managedReceiving(row)] as const),
    ])
    return places.map((place) => found.get(placeOf(place)))
  })
  return {
    find: (tenant, walletId) => find({ tenant, walletId }),
    findByAddress: (tenant, network, address) => findAt({ tenant, network: network.name, address }),
  }
}

/** The wallet that a payment names, if it can receive: 422 for one that is missing, retired or flagged by screening. */
export async function getPayableWallet(
  ctx: Pick<Ctx, 'tenant'> & { readonly receivingWallets: WalletDirectory },
  walletId: WalletId,
): Promise<ReceivingWallet> {
  const wallet = await ctx.receivingWallets.find(ctx.tenant, walletId)
  if (wallet === undefined) throw failNamed('wallet-not-found')
  if (wallet.isRetired) throw failNamed('wallet-retired')
  if (!wallet.isActive) throw failNamed('wallet-flagged')
  return wallet
}

function asksForByo({ walletId }: WalletQuestion): boolean {
  return isId('byw', walletId)
}

type Owned = Awaited<ReturnType<typeof listRequestedWallets>>[number]

function namedByo(row: Owned): [string, ReceivingWallet] {
  return [nameOf({ tenant: row, walletId: row.id }), receiving(row)]
}

function namedManaged(row: ManagedReceiver): [string, ReceivingWallet] {
  return [nameOf({ tenant: row, walletId: row.id }), managedReceiving(row)]
}

function nameOf({ tenant, walletId }: WalletQuestion): string {
  return `${tenant.organisationId}/${tenant.environment}/${walletId}`
}

function placeOf({ tenant, network, address }: PlaceQuestion): string {
  return `${tenant.organisationId}/${tenant.environment}/${network}/${address}`
}

function receiving(row: ByoWalletRow): ReceivingWallet {
  const { id, address, chain, supportedTokens, amlStatus } = row
  const isActive = amlStatus !== 'flagged'
  const network = requireNetwork(row.network)
  return { id, address, chain, network, supportedTokens, amlStatus, isActive, isRetired: false }
}

/** A managed wallet's own address is not screened; money from a flagged sender is frozen in it. */
function managedReceiving(row: ManagedReceiver): ReceivingWallet {
  const { id, address, chain, supportedTokens, retiredAt } = row
  const isRetired = retiredAt !== null
  return {
    id,
    address,
    chain,
    network: requireNetwork(row.network),
    supportedTokens,
    amlStatus: 'clear',
    isActive: !isRetired,
    isRetired,
  }
}
