import { checksumAddress, type Network, networks } from '@purser/protocol'
import type { Tenant } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import type { RecurringTask } from '../../../platform/recurring-task.ts'
import type { Deps } from '../ports.ts'
import type { BalanceReads } from './opening.ts'
import { insertUnread, isAnyUnread, listUnread, markAwaited, storeUnread } from './opening-store.ts'

/** Most balances in one read. */
const balancesMost = 1_000

/**
 * Puts what a recovered wallet has received on hold, on every network of its environment: while it had no record nothing was booked, so nobody has
 * screened it. Call it in the transaction that makes the record.
 */
export function holdReceived(tx: Tx, tenant: Tenant, walletId: string): Promise<void> {
  const own = networks.filter(({ isTestnet }) => isTestnet === (tenant.environment === 'test'))
  const tokens = own.flatMap(({ name, tokens }) => tokens.map(({ address }) => ({ network: name, token: address })))
  return insertUnread(tx, tenant, walletId, tokens)
}

/**
 * Reads the balances of recovered wallets, which then replace the hold on everything. Blocks that were read before the wallet was watched have none of
 * its deposits booked, so a balance counts only after a block that is newer than those. Idempotent: a balance is of its own block, and what is booked
 * up to that block is subtracted when it is read.
 */
export const readRecovered: RecurringTask<Deps> = {
  name: 'wallets.read-recovered',
  everyMs: 2_000,
  isDue: ({ chains }) => isAnyUnread(chains.configured.map(({ name }) => name)),
  async run(ctx) {
    for (const network of ctx.chains.configured)
      await readRecoveredOn(ctx, network, ctx.chains.on(network)).catch((error: unknown) =>
        ctx.log.warn(
          { err: error, network: network.name },
          'balances of recovered wallets could not be read; retrying',
        ),
      )
  },
}

/** One step on one network: stores which block the balances wait for, or reads those whose block has come. */
export async function readRecoveredOn(
  { db }: Pick<Deps, 'db'>,
  { name, confirmationDepth }: Network,
  reads: BalanceReads,
): Promise<void> {
  const unread = await listUnread(db, name, balancesMost)
  if (unread.length === 0) return
  if (unread.some(({ blockNumber }) => blockNumber < 0n)) {
    const { newest } = await reads.stateAt([])
    // The head of a majority, and one more block for a node that is ahead of it.
    return markAwaited(db, name, newest + BigInt(confirmationDepth))
  }
  const { block, values } = await reads.stateAt(
    unread.map(({ address, token }) => ({ account: checksumAddress(address), asset: checksumAddress(token) })),
  )
  const read = unread.flatMap(({ walletId, token, blockNumber }, index) => {
    const rawAmount = values[index]
    return rawAmount === undefined || blockNumber > block.number ? [] : [{ walletId, token, rawAmount }]
  })
  if (read.length > 0) await storeUnread(db, name, block.number, read)
}
