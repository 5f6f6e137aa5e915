import type { Network } from '@purser/protocol'
import type { LookUp, Receipt } from '../../../chain/port.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Recurring } from '../../../platform/job.ts'
import { close } from '../../relayer/index.ts'
import { chargeGas, costOfReceipt, networkOf } from '../give-back.ts'
import { endFailed, endSettled } from '../settlement-outcome.ts'
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
  const [receipt] = found.receipts
  const seen = { row, receipt, outcome: outcomeFor(network, row, receipt, found) }
  return (await concludeAll(ctx, network, [seen])) > 0
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
  const seen = rows.map((row, index) => {
    const receipt = found.receipts[index]
    return { row, receipt, outcome: outcomeFor(network, row, receipt, found) }
  })
  for (const { row, outcome } of seen)
    if (outcome.kind === 'absent' && isLeft(ctx, row) && ctx.witness.isCurrent())
      await chain.sendTempo(row.settlement.raw)
  await concludeAll(ctx, network, seen)
}

/** What one node says of a payment. */
interface Seen {
  readonly row: SentRow
  readonly receipt: Receipt | undefined
  readonly outcome: TempoOutcome
}

/** Records the outcomes that a majority of the nodes confirms; answers how many. What one node says alone is asked again later. */
async function concludeAll(ctx: System, network: Network, seen: readonly Seen[]): Promise<number> {
  const chain = ctx.chains.on(network)
  const over = seen.filter(({ outcome: { kind } }) => kind === 'settled' || kind === 'failed')
  const mined = over.flatMap((one) => (one.receipt === undefined ? [] : [{ ...one, receipt: one.receipt }]))
  const unmined = over.filter(({ receipt }) => receipt === undefined)
  const [confirmed, lost] = await Promise.all([
    chain.confirmReceipts(mined.map(({ receipt }) => receipt)),
    chain.tempoTransactionsLost(
      unmined.map(({ row }) => ({ hash: row.txHash, validBefore: BigInt(row.settlement.validBefore) })),
    ),
  ])
  const sure = [
    ...mined.filter((_, index) => confirmed[index] === 'yes'),
    ...unmined.filter((_, index) => lost[index] === 'yes'),
  ]
  for (const one of sure) await conclude(ctx, one)
  return sure.length
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

/** Records the outcome, with what the operator paid for it as the sponsor. */
async function conclude(ctx: System, { row, receipt, outcome }: Seen): Promise<void> {
  if (outcome.kind !== 'settled' && outcome.kind !== 'failed') return
  const weiUsed = row.settlement.sponsoredGas === '0' || receipt === undefined ? 0n : costOfReceipt(receipt)
  const gasNanoUsd = ctx.gasPrices.worthOf(networkOf(row.network), weiUsed)
  await ctx.db.tx(async (tx) => {
    const { rows, closing } =
      outcome.kind === 'settled'
        ? await endSettled(ctx, tx, [{ id: row.id, txHash: row.txHash, gasNanoUsd }])
        : await endFailed(ctx, tx, [failedFor(row, outcome.reason)])
    const isCharged = outcome.kind === 'failed' && rows.length > 0
    const gas = isCharged ? await chargeGas(tx, [{ paymentId: row.id, nanoUsd: gasNanoUsd }]) : []
    await close(ctx, tx, [closing, { gas, audits: [] }])
  })
}

function failedFor({ id, failureReason }: SentRow, reason: string) {
  return { id, status: 'settlement_failed', reason: failureReason ?? reason } as const
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
