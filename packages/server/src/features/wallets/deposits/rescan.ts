import { type Network, networkByName } from '@purser/protocol'
import type { PlacedReceipt } from '../../../chain/blocks/port.ts'
import { fail as failChain } from '../../../chain/errors.ts'
import { networkFor } from '../../chains/index.ts'
import type { Ctx } from '../ports.ts'
import { rescanTurns } from '../semaphores.ts'
import type { Booking } from './booking.ts'
import { listScannedBlocks, lockNetwork } from './cursor-store.ts'
import { fail } from './errors.ts'
import { piecesOf } from './pieces.ts'
import { reconcile } from './reconcile.ts'
import type { RescanRequest, RescanResult } from './schema.ts'
import { listBookings, RowsContradicted, storeBookings } from './store-scan.ts'
import { listKnownRows, listTransactionsOf } from './transaction-store.ts'
import { shownTransaction } from './transactions.ts'

/** Most bookings that one transaction stores while it locks the network, and most transactions in a response. */
const pieceMax = 250
const shownMax = 500

/**
 * Books the movements of one transaction to and from the caller's wallets, as the watcher would, including those from before a wallet was
 * watched. Deposits wait for finality like any other, and deposit.success reports each once. Idempotent. Locks the network, which its watcher
 * needs, only while it changes rows, and for a limited number of them at a time.
 */
export async function rescan(ctx: Ctx, { chain, txHash }: RescanRequest): Promise<RescanResult> {
  const network = networkFor(chain, ctx.tenant.environment)
  const { receipt, header } = await readTransaction(ctx, network, txHash)
  const { organisationId } = ctx.tenant
  const known = await listKnownRows(ctx.db, network.name, txHash, organisationId)
  const bookedWallets = new Set(known.flatMap(({ status, walletId }) => (status === 'withdrawn' ? [] : [walletId])))
  const finding = {
    headers: [header],
    transfers: receipt.transfers,
    countsEarlier: true,
    organisationId,
    bookedWallets,
  }
  const bookings = await listBookings(ctx.db, network, finding)
  const changes = reconcile(bookings, known)
  if (changes.inserted.length + changes.moved.length + changes.replaced.length > 0)
    for (const piece of piecesOf([bookings], pieceMax)) await store(ctx, network, piece)
  return ctx.db.tx(async (tx) => {
    const rows = await listTransactionsOf(tx, ctx.tenant, { network: network.name, txHash, limit: shownMax })
    if (rows.length === 0) throw fail('deposit-not-found')
    await ctx.idempotency?.commit(tx, `${network.name}/${txHash}`)
    return { transactions: rows.map(shownTransaction) }
  })
}

/** Stores one part. The rescans of this process take turns at the network, so that its watcher waits for one part at most. */
async function store(ctx: Ctx, network: Network, bookings: readonly Booking[]): Promise<void> {
  await ctx.withSemaphores(rescanTurns(network.name), () =>
    ctx.db.tx(async (tx) => {
      await lockNetwork(tx, network.name)
      await storeBookings(ctx, tx, network, { bookings }).catch((error: unknown) => {
        throw error instanceof RowsContradicted ? failChain('chain-unavailable', {}, error) : error
      })
    }),
  )
}

/** Response to a repeat with the same Idempotency-Key: the current rows of the transaction. */
export async function rescanned(ctx: Pick<Ctx, 'db' | 'tenant'>, resourceId: string): Promise<RescanResult> {
  const [name = '', txHash = ''] = resourceId.split('/')
  const network = networkByName(name)
  if (network === undefined) throw new Error(`no network is called ${name}`)
  const rows = await listTransactionsOf(ctx.db, ctx.tenant, { network: network.name, txHash, limit: shownMax })
  return { transactions: rows.map(shownTransaction) }
}

/** The transaction's receipt and its block. A block that differs from the watcher's is refused, since one of two nodes is wrong. */
async function readTransaction(
  ctx: Pick<Ctx, 'chains' | 'db'>,
  network: Network,
  txHash: RescanRequest['txHash'],
): Promise<PlacedReceipt> {
  const found = await ctx.chains.on(network).blocks.transferReceipt(txHash)
  if (found === undefined) throw fail('transaction-not-found')
  const { number, hash } = found.header
  const known = await listScannedBlocks(ctx.db, network.name, { below: number + 1n, limit: 1 })
  if (known[0]?.number === number && known[0].hash !== hash)
    throw failChain('chain-unavailable', {}, new Error('a receipt is of another block than the chain has there'))
  return found
}
