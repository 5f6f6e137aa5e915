import { isTempo, type Network } from '@purser/protocol'
import type { LookUp, Receipt } from '../../../../chain/port.ts'
import type { Recurring } from '../../../../platform/job.ts'
import { changeGasLast } from '../../../plans/index.ts'
import { chargeGas, costOfReceipt, networkOf } from '../../give-back.ts'
import type { Ctx, Deps } from '../../ports.ts'
import { recordFailed, recordSettled } from '../../settlement-outcome.ts'
import { outcomeOf, type TempoOutcome } from './outcome.ts'
import { isAnySent, listSent, type SentRow } from './store.ts'

type System = Omit<Ctx, 'tenant'>

const pageRows = 100
/** Grace period after a payment was recorded in which only its own process sends it. */
const ownMs = 2_000

/** Reads the chain for one payment and records its outcome if there is one; returns whether there was. */
export async function followPayment(ctx: System, network: Network, row: SentRow): Promise<boolean> {
  const found = await ctx.chains.on(network).lookUp([row.txHash])
  const [receipt] = found.receipts
  const seen = { row, receipt, outcome: outcomeFor(network, row, receipt, found) }
  return (await concludeAll(ctx, network, [seen])) > 0
}

/**
 * Finds the outcome of every recorded transaction that is still open: it settles or fails by what the chain reports, otherwise
 * the same bytes are sent once more. This completes the work of processes that died.
 */
async function followTempo(ctx: System, network: Network): Promise<void> {
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

/** One node's report about a payment. */
interface Seen {
  readonly row: SentRow
  readonly receipt: Receipt | undefined
  readonly outcome: TempoOutcome
}

/**
 * Records the outcomes that a majority of the nodes confirms; returns how many. A report of only one node is checked again later.
 */
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

/** Whether a transaction must not be sent again: a node refused it, and its payer received that refusal. */
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

/** Records the outcome, with the fee that the operator paid as the sponsor. */
async function conclude(ctx: System, { row, receipt, outcome }: Seen): Promise<void> {
  if (outcome.kind !== 'settled' && outcome.kind !== 'failed') return
  const weiUsed = row.settlement.sponsoredGas === '0' || receipt === undefined ? 0n : costOfReceipt(receipt)
  const gasNanoUsd = ctx.gasPrices.worthOf(networkOf(row.network), weiUsed)
  await ctx.db.tx(async (tx) => {
    if (outcome.kind === 'settled')
      return void (await recordSettled(ctx, tx, [{ id: row.id, txHash: row.txHash, gasNanoUsd }]))
    const failed = await recordFailed(ctx, tx, [failedFor(row, outcome.reason)])
    if (failed.size > 0) changeGasLast(tx, await chargeGas(tx, [{ paymentId: row.id, nanoUsd: gasNanoUsd }]))
  })
}

function failedFor({ id, failureReason }: SentRow, reason: string) {
  return { id, status: 'settlement_failed', reason: failureReason ?? reason } as const
}

/**
 * Follows the transactions of payers on Tempo. Running it twice is harmless: a chain accepts the same bytes once, and a row
 * leaves `settling` once.
 */
export const followTransactions: Recurring<Deps> = {
  name: 'payments.follow-tempo',
  everyMs: 500,
  isDue: ({ chains }) => isAnySent(chains.configured.filter(isTempo).map(({ name }) => name)),
  async run(ctx) {
    for (const network of ctx.chains.configured.filter(isTempo)) {
      await followTempo(ctx, network).catch((error: unknown) =>
        ctx.log.warn({ err: error, network: network.name }, 'the chain could not be read; outcomes stay open'),
      )
    }
  },
}
