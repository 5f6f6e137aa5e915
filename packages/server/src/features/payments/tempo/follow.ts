import type { Network } from '@purser/protocol'
import type { LookUp, Receipt } from '../../../chain/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { recordEnded, recordSettled } from '../settlement-outcome.ts'
import { isTempo } from './network.ts'
import { outcomeOf, type TempoOutcome } from './outcome.ts'
import { listSent, type SentRow } from './store.ts'

type System = Omit<Ctx, 'tenant'>

const pageRows = 100
/** Left alone so long after it was recorded: whoever recorded it is sending it. */
const ownMs = 2_000

/** Asks the chain about one payment, and records the outcome when there is one; answers whether there was. */
export async function followPayment(ctx: System, network: Network, row: SentRow): Promise<boolean> {
  const found = await ctx.chains.on(network).lookUp([row.txHash])
  return conclude(ctx, row, outcomeFor(network, row, found.receipts[0], found))
}

/**
 * Finds out what became of every transaction of a payer's that was recorded and is not over: settled or failed by what the chain says, otherwise
 * the same bytes are sent once more. Whatever died when, this ends it.
 */
export async function followTempo(ctx: System, network: Network): Promise<void> {
  for (let after = ''; ; ) {
    const rows = await listSent(ctx.db, network.name, { limit: pageRows, after })
    if (rows.length > 0) await followRows(ctx, network, rows)
    after = rows.at(-1)?.id ?? ''
    if (rows.length < pageRows) return
  }
}

async function followRows(ctx: System, network: Network, rows: readonly SentRow[]): Promise<void> {
  const chain = ctx.chains.on(network)
  const found = await chain.lookUp(rows.map(({ txHash }) => txHash))
  for (const [index, row] of rows.entries()) {
    const outcome = outcomeFor(network, row, found.receipts[index], found)
    if (outcome.kind === 'absent' && isLeft(ctx, row)) await chain.sendTempo(row.settlement.raw)
    await conclude(ctx, row, outcome)
  }
}

/** A transaction that a node refused is not sent again: its payer was told that it will not be. */
function isLeft(ctx: System, row: SentRow): boolean {
  return row.failureReason === null && ctx.clock.now().getTime() - row.settlingAt.getTime() >= ownMs
}

function outcomeFor(
  network: Network,
  { asset, settlement, payTo, rawAmount }: SentRow,
  receipt: Receipt | undefined,
  found: LookUp,
): TempoOutcome {
  const promised = { token: asset, from: settlement.from, to: payTo, amount: rawAmount, memo: settlement.memo }
  const sent = { promised, validBefore: BigInt(settlement.validBefore), depth: network.confirmationDepth }
  return outcomeOf(sent, receipt, found)
}

async function conclude(ctx: System, row: SentRow, outcome: TempoOutcome): Promise<boolean> {
  if (outcome.kind === 'settled') {
    await ctx.db.tx((tx) => recordSettled(ctx, tx, [row], row.txHash))
    return true
  }
  if (outcome.kind !== 'failed') return false
  await ctx.db.tx((tx) => recordEnded(ctx, tx, row, 'settlement_failed', row.failureReason ?? outcome.reason))
  return true
}

/**
 * Follows the transactions of payers on Tempo. Running twice is harmless: a chain takes the same bytes once, and a row moves only from
 * `settling`, once.
 */
export const followTransactions: Recurring = {
  name: 'payments.follow-tempo',
  everyMs: 500,
  async run(ctx) {
    for (const network of ctx.chains.configured.filter(isTempo)) {
      await followTempo(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'the chain could not be asked; outcomes stay open'),
      )
    }
  },
}
