import type { Network } from '@purser/protocol'
import type { Chain, Receipt, Verdict } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { Recurring } from '../../platform/job.ts'
import { relays } from '../relayer/index.ts'
import { endAll } from './ending.ts'
import {
  type DueTransfer,
  isAnyToFinalize,
  listToFinalize,
  lockSettled,
  markFinal,
  markSettled,
  markUnsettled,
  postponeFinality,
  type Settled,
} from './finality-store.ts'
import { isFollowed } from './follow.ts'
import { gaslessPurpose } from './gasless/store.ts'
import { paymentPurpose } from './paying/store.ts'
import type { Ctx, Deps } from './ports.ts'
import { lockTransfers, type TransferId, type TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

const atOnce = 200
const pollMsMin = 2_000
const pollMsMax = 12_000

/**
 * Whether the payment depth is final on this network. On other networks a block may be reorganized until the chain marks it as safe or
 * final, as for deposits.
 */
export function isFinalAtDepth({ depositFinality, confirmationDepth }: Network): boolean {
  return 'depth' in depositFinality && depositFinality.depth <= confirmationDepth
}

/** Time of the next check of a block that is not final: two block times, within bounds. */
function nextFinalityPoll({ clock }: Pick<Work, 'clock'>, { blockTimeMs }: Network): Date {
  return instantOf(clock.now().getTime() + Math.min(pollMsMax, Math.max(pollMsMin, 2 * blockTimeMs)))
}

/** Ends transfers with an outcome at the payment depth if that depth is final; otherwise they stay open until their block is final. */
export function endOrAwait(ctx: Work, tx: Tx, network: Network, settled: readonly Settled[]): Promise<void> {
  return isFinalAtDepth(network) ? endAll(ctx, tx, settled) : awaitFinality(ctx, tx, network, settled)
}

/** Keeps transfers with an outcome at the payment depth open until their block is final. */
export function awaitFinality(ctx: Work, tx: Tx, network: Network, settled: readonly Settled[]): Promise<void> {
  return markSettled(tx, settled, { now: ctx.clock.now(), lookAt: nextFinalityPoll(ctx, network) })
}

/**
 * Ends transfers whose block is final, and reopens those whose block is gone: the same bytes are sent again, or a new block decides.
 * Idempotent: each transfer is decided under its row lock, while it still waits for the checked block.
 */
export const finalizeTransfers: Recurring<Deps> = {
  name: 'transfers.finalize',
  everyMs: 500,
  isDue: ({ chains, clock }) =>
    isAnyToFinalize(
      awaitedOf(chains).map(({ name }) => name),
      clock.now(),
    ),
  async run(ctx) {
    for (const network of awaitedOf(ctx.chains))
      await finalizeOn(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'blocks of transfers could not be checked; retrying'),
      )
  },
}

function awaitedOf({ configured }: Work['chains']) {
  return configured.filter((network) => !isFinalAtDepth(network))
}

async function finalizeOn(ctx: Work, network: Network): Promise<void> {
  const due = await listToFinalize(ctx.db, network.name, ctx.clock.now(), atOnce)
  if (due.length === 0) return
  // Postponed before anything can fail, so that failing ones do not delay others.
  const ids = due.map(({ transferId }) => transferId)
  await postponeFinality(ctx.db, ids, nextFinalityPoll(ctx, network))
  const verdicts = await confirmBlocks(ctx.chains.on(network), due)
  const of = (wanted: Verdict) => due.filter((_, index) => verdicts[index] === wanted)
  const final = of('yes')
  if (final.length > 0) await ctx.db.tx((tx) => endFinal(ctx, tx, final))
  for (const gone of of('no')) await ctx.db.tx((tx) => reopen(ctx, tx, network, gone))
}

/** `yes`: its block is final. `no`: the transaction is in no block or in another one, which the lane must evaluate. */
async function confirmBlocks(chain: Chain, due: readonly DueTransfer[]): Promise<readonly Verdict[]> {
  const { receipts } = await chain.lookUp(due.map(({ hash }) => hash))
  const lookups = due.map((one, index) => ({ one, receipt: receipts[index] }))
  const isInBlock = ({ one, receipt }: (typeof lookups)[number]) => receipt?.blockHash === one.blockHash
  const inBlock = lookups.filter(isInBlock)
  const verdicts = await chain.confirmReceipts(receiptsOf(inBlock), chain.network.depositFinality)
  const found = new Map(inBlock.map(({ one }, index) => [one, verdicts[index] ?? 'undecided']))
  for (const { one, receipt } of lookups.filter((lookup) => !isInBlock(lookup)))
    found.set(one, await isElsewhere(chain, one, receipt))
  return due.map((one) => found.get(one) ?? 'undecided')
}

function receiptsOf(lookups: readonly { readonly receipt: Receipt | undefined }[]): Receipt[] {
  return lookups.flatMap(({ receipt }) => (receipt === undefined ? [] : [receipt]))
}

async function isElsewhere(chain: Chain, { hash }: DueTransfer, receipt: Receipt | undefined): Promise<Verdict> {
  if (receipt === undefined) return (await chain.isInNoBlock([hash])) === 'yes' ? 'no' : 'undecided'
  const [isInAnother] = await chain.confirmReceipts([receipt], { depth: 1 })
  return isInAnother === 'yes' ? 'no' : 'undecided'
}

/** Partner transfers are followed until delivery. */
async function endFinal(ctx: Work, tx: Tx, due: readonly DueTransfer[]): Promise<void> {
  const waiting = await lockSettled(tx, due)
  const rows = new Map((await lockTransfers(tx, waiting)).map((row) => [row.id, row]))
  const ends = due.flatMap(({ transferId, fault }) => {
    const row = rows.get(transferId)
    return row === undefined || isLeftToPartner(row, fault) ? [] : [{ transferId, fault: fault ?? undefined }]
  })
  await markFinal(tx, waiting)
  await endAll(ctx, tx, ends)
}

function isLeftToPartner(row: TransferRow, fault: string | null): boolean {
  return row.endedAt !== null || (fault === null && isFollowed(row))
}

async function reopen(ctx: Work, tx: Tx, network: Network, due: DueTransfer): Promise<void> {
  if ((await lockSettled(tx, [due])).length === 0) return
  const { transferId, transactionId, hash } = due
  const details = { transferId, network: network.name, hash }
  ctx.log.error(details, 'the block of a confirmed transfer is gone; the transfer is pending again')
  await markUnsettled(tx, due)
  if (transactionId === null) return reopenRelays(tx, transferId)
  await ctx.lanes.reopen(tx, transactionId)
  tx.afterCommit(() => ctx.lanes.notify(network))
}

/** Reopens the signature of a transfer: the settler sends that of a gasless one, and the payee that of a payment. */
async function reopenRelays(tx: Tx, transferId: TransferId): Promise<void> {
  await relays.reopen(tx, gaslessPurpose, transferId)
  await relays.watchAgain(tx, paymentPurpose, transferId)
}
