import { type Network, networkByName } from '@purser/protocol'
import type { BlockHeader, TransferReceipt } from '../../../chain/block-port.ts'
import { fail as failChain } from '../../../chain/errors.ts'
import { networkFor } from '../../chains/index.ts'
import type { Ctx } from '../ports.ts'
import { listScannedBlocks, lockNetwork } from './cursor-store.ts'
import { fail } from './errors.ts'
import type { RescanRequest, RescanResult } from './schema.ts'
import { book, RowsContradicted } from './store-scan.ts'
import { listTransactionsOf } from './transaction-store.ts'
import { shownTransaction } from './transactions.ts'

/**
 * Books the movements of one transaction to and from the caller's wallets, as the watcher would, including those from before a wallet was
 * watched. Deposits wait for finality like any other, and deposit.success reports each once. Idempotent.
 */
export async function rescan(ctx: Ctx, { chain, txHash }: RescanRequest): Promise<RescanResult> {
  const network = networkFor(chain, ctx.tenant.environment)
  const { receipt, header } = await readTransaction(ctx, network, txHash)
  return ctx.db.tx(async (tx) => {
    await lockNetwork(tx, network.name)
    await book(ctx, tx, network, {
      headers: [header],
      transfers: receipt.transfers,
      countsEarlier: true,
      organisationId: ctx.tenant.organisationId,
    }).catch((error: unknown) => {
      throw error instanceof RowsContradicted ? failChain('chain-unavailable', {}, error) : error
    })
    const rows = await listTransactionsOf(tx, ctx.tenant, network.name, txHash)
    if (rows.length === 0) throw fail('deposit-not-found')
    await ctx.idempotency?.commit(tx, `${network.name}/${txHash}`)
    return { transactions: rows.map(shownTransaction) }
  })
}

/** Response to a repeat with the same Idempotency-Key: the current rows of the transaction. */
export async function rescanned(ctx: Ctx, resourceId: string): Promise<RescanResult> {
  const [name = '', txHash = ''] = resourceId.split('/')
  const network = networkByName(name)
  if (network === undefined) throw new Error(`no network is called ${name}`)
  const rows = await listTransactionsOf(ctx.db, ctx.tenant, network.name, txHash)
  return { transactions: rows.map(shownTransaction) }
}

/** The transaction's receipt and its block. A block that differs from the watcher's is refused, since one of two nodes is wrong. */
async function readTransaction(
  ctx: Ctx,
  network: Network,
  txHash: RescanRequest['txHash'],
): Promise<{ readonly receipt: TransferReceipt; readonly header: BlockHeader }> {
  const { blocks } = ctx.chains.on(network)
  const receipt = await blocks.transferReceipt(txHash)
  if (receipt === undefined) throw fail('transaction-not-found')
  const [header] = await blocks.headers([receipt.blockNumber])
  const known = await listScannedBlocks(ctx.db, network.name, { below: receipt.blockNumber + 1n, limit: 1 })
  const isDenied = known[0]?.number === receipt.blockNumber && known[0].hash !== receipt.blockHash
  if (header === undefined || header.hash !== receipt.blockHash || isDenied)
    throw failChain('chain-unavailable', {}, new Error('a receipt is of another block than the chain has there'))
  return { receipt, header }
}
