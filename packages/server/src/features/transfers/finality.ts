import type { Network } from '@purser/protocol'
import type { Chain, Receipt, Verdict } from '../../chain/port.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import type { Recurring } from '../../platform/job.ts'
import { auditEnds, endAll } from './ending.ts'
import {
  type DueTransfer,
  listToFinalize,
  lockSettled,
  markFinal,
  markSettled,
  markUnsettled,
  postponeFinality,
  type Settled,
} from './finality-store.ts'
import { isFollowed } from './follow.ts'
import { lockTransfers, type TransferRow } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

const atOnce = 200
const lookMsMin = 2_000
const lookMsMax = 12_000

/**
 * Whether the depth that payments wait for is all that there is to wait for. Elsewhere a block may still be undone until the chain calls it safe
 * or final, as for deposits.
 */
export function isFinalAtDepth({ depositFinality, confirmationDepth }: Network): boolean {
  return 'depth' in depositFinality && depositFinality.depth <= confirmationDepth
}

/** How long until a block that is not final yet is looked at again: two block times, within bounds. */
function nextFinalityLook({ clock }: Pick<Work, 'clock'>, { blockTimeMs }: Network): Date {
  return instantOf(clock.now().getTime() + Math.min(lookMsMax, Math.max(lookMsMin, 2 * blockTimeMs)))
}

/** Keeps transfers open that a block at the payment depth decides, until that block is final. */
export function awaitFinality(ctx: Work, tx: Tx, network: Network, settled: readonly Settled[]): Promise<void> {
  return markSettled(tx, settled, { now: ctx.clock.now(), lookAt: nextFinalityLook(ctx, network) })
}

/**
 * Ends transfers whose block is final, and reopens those whose block is gone: the same bytes are sent again, or their new block decides. Harmless
 * twice: each is decided under its row's lock, as long as it waits for the block that was looked at.
 */
export const finalizeTransfers: Recurring = {
  name: 'transfers.finalize',
  everyMs: 500,
  async run(ctx) {
    for (const network of ctx.chains.configured.filter((one) => !isFinalAtDepth(one)))
      await finalizeOn(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'blocks of transfers could not be looked at; tried again'),
      )
  },
}

async function finalizeOn(ctx: Work, network: Network): Promise<void> {
  const due = await listToFinalize(ctx.db, network.name, ctx.clock.now(), atOnce)
  if (due.length === 0) return
  // Put off before anything may fail, so that those which cannot be judged do not keep others waiting.
  const ids = due.map(({ transferId }) => transferId)
  await postponeFinality(ctx.db, ids, nextFinalityLook(ctx, network))
  const verdicts = await judge(ctx.chains.on(network), due)
  const of = (wanted: Verdict) => due.filter((_, index) => verdicts[index] === wanted)
  const final = of('yes')
  if (final.length > 0) await ctx.db.tx((tx) => endFinal(ctx, tx, final))
  for (const gone of of('no')) await ctx.db.tx((tx) => reopen(ctx, tx, network, gone))
}

/** `yes`: its block is final. `no`: the transaction is in no block, or in another one, which the lane has to judge. */
async function judge(chain: Chain, due: readonly DueTransfer[]): Promise<readonly Verdict[]> {
  const { receipts } = await chain.lookUp(due.map(({ hash }) => hash))
  const judgements = due.map((one, index) => ({ one, receipt: receipts[index] }))
  const isThere = ({ one, receipt }: (typeof judgements)[number]) => receipt?.blockHash === one.blockHash
  const there = judgements.filter(isThere)
  const verdicts = await chain.confirmReceipts(receiptsOf(there), chain.network.depositFinality)
  const found = new Map(there.map(({ one }, index) => [one, verdicts[index] ?? 'undecided']))
  for (const { one, receipt } of judgements.filter((judgement) => !isThere(judgement)))
    found.set(one, await isElsewhere(chain, one, receipt))
  return due.map((one) => found.get(one) ?? 'undecided')
}

function receiptsOf(judgements: readonly { readonly receipt: Receipt | undefined }[]): Receipt[] {
  return judgements.flatMap(({ receipt }) => (receipt === undefined ? [] : [receipt]))
}

async function isElsewhere(chain: Chain, { hash }: DueTransfer, receipt: Receipt | undefined): Promise<Verdict> {
  if (receipt === undefined) return (await chain.isInNoBlock([hash])) === 'yes' ? 'no' : 'undecided'
  const [isInAnother] = await chain.confirmReceipts([receipt], { depth: 1 })
  return isInAnother === 'yes' ? 'no' : 'undecided'
}

/** What a partner delivers is followed beyond its block. */
async function endFinal(ctx: Work, tx: Tx, due: readonly DueTransfer[]): Promise<void> {
  const waiting = await lockSettled(tx, due)
  const rows = new Map((await lockTransfers(tx, waiting)).map((row) => [row.id, row]))
  const ends = due.flatMap(({ transferId, fault }) => {
    const row = rows.get(transferId)
    return row === undefined || isLeftToPartner(row, fault) ? [] : [{ transferId, fault: fault ?? undefined }]
  })
  await markFinal(tx, waiting)
  await auditEnds(ctx, tx, await endAll(ctx, tx, ends))
}

function isLeftToPartner(row: TransferRow, fault: string | null): boolean {
  return row.endedAt !== null || (fault === null && isFollowed(row))
}

async function reopen(ctx: Work, tx: Tx, network: Network, due: DueTransfer): Promise<void> {
  if ((await lockSettled(tx, [due])).length === 0) return
  const { transferId, transactionId, hash } = due
  const facts = { transferId, network: network.name, hash }
  ctx.log.error(facts, 'the block of a confirmed transfer is gone; the transfer is pending again')
  await markUnsettled(tx, due)
  await ctx.lanes.reopen(tx, transactionId)
  tx.afterCommit(() => ctx.lanes.notify(network))
}
