import {
  type Address,
  decodeTransferWithMemoLog,
  type Hex,
  isTempo,
  type Network,
  requireNetwork,
  sameAddress,
} from '@purser/protocol'
import type { Log, LookUp, Receipt, ShownReceipt, TempoRefusal } from '../../../../chain/port.ts'
import { instantOf } from '../../../../platform/clock.ts'
import type { ActingCtx } from '../../../../platform/ctx.ts'
import type { RecurringTaskByNetwork } from '../../../../platform/recurring-task.ts'
import { changeGasLast, costOfReceipt } from '../../../plans/index.ts'
import type { Ctx, Deps } from '../../ports.ts'
import { chargeGas, recordFailed, recordSettled, recordUncounted } from '../../settlement-outcome.ts'
import { filterUnmined } from '../../unmined-payments.ts'
import { insertFailure } from './sponsored-store.ts'
import { isAnyDue, type SentRow, takeDue } from './store.ts'

type System = Omit<Ctx, 'tenant'>

const pageRows = 100
/** Most pages of one run. */
const pagesMax = 50
const dayMs = 86_400_000

/** Reads the chain for one payment and records its outcome if there is one; returns whether there was. */
export async function followPayment(ctx: System, network: Network, row: SentRow): Promise<boolean> {
  const found = await ctx.chains.on(network).lookUp([row.txHash])
  return (await concludeAll(ctx, network, [seenOf(network, row, found.receipts[0], found)])) > 0
}

/**
 * Finds the outcomes of the open payments that are due: each settles or fails by what the chain reports, otherwise the same bytes
 * are sent once more. This completes the work of processes that died.
 */
async function followTempo(ctx: System, network: Network): Promise<void> {
  const { cursors } = ctx.unsettledChecks
  for (let page = 0; page < pagesMax; page += 1) {
    const rows = await takeDue(ctx.db, network.name, { most: pageRows, cursors })
    if (rows.length > 0) await followRows(ctx, network, rows)
    if (rows.length < pageRows) return
  }
}

/** Records the outcomes first: no payment waits for the transactions of others to be sent. */
async function followRows(ctx: System, network: Network, rows: readonly SentRow[]): Promise<void> {
  const chain = ctx.chains.on(network)
  const found = await chain.lookUp(rows.map(({ txHash }) => txHash))
  const seen = rows.map((row, index) => seenOf(network, row, found.receipts[index], found))
  await concludeAll(ctx, network, seen)
  const left = seen.flatMap(({ row, outcome }) =>
    outcome.kind === 'absent' && row.failureReason === null ? [row] : [],
  )
  // A process of an earlier release marks a refused one and frees nothing.
  const marked = seen.flatMap(({ row, outcome }) =>
    isOpen(outcome) && row.failureReason !== null && row.hasPlace ? [row] : [],
  )
  await freeRefused(ctx, marked)
  if (left.length === 0 || !ctx.witness.isCurrent()) return
  // A restored database that lost a payment would not credit what its transaction pays. The request that recorded it may have ended before this.
  await ctx.witness.cover()
  const sent = await chain.sendTempo(left.map(({ settlement }) => settlement.raw))
  const refused = left.flatMap((row, index) => {
    const response = sent[index]
    return response?.outcome === 'refused' ? [{ ...row, failureReason: refusalOf(response) }] : []
  })
  await freeRefused(ctx, await filterUnmined(ctx, network.name, refused))
}

/** Frees what refused transactions keep, each by itself. */
async function freeRefused(ctx: Pick<System, 'db' | 'log'>, refused: readonly SentRow[]): Promise<void> {
  for (const { id, failureReason } of refused) {
    try {
      await ctx.db.tx((tx) => recordUncounted(tx, [{ id, reason: failureReason }]))
    } catch (error) {
      ctx.log.error({ err: error, paymentId: id }, 'a refused payment could not be recorded; retrying')
    }
  }
}

/** Returns the failure reason of a transaction that the nodes refuse. */
export function refusalOf({ reason }: { readonly reason: Refusal }): TempoFailure {
  return `transaction_refused_${reason}`
}

function isOpen({ kind }: TempoOutcome): boolean {
  return kind !== 'settled' && kind !== 'failed'
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
  const over = seen.filter(({ outcome }) => !isOpen(outcome))
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
  let concluded = 0
  for (const one of sure) {
    try {
      await conclude(ctx, one)
      concluded += 1
    } catch (error) {
      ctx.log.error({ err: error, paymentId: one.row.id }, 'the outcome of a payment could not be recorded; retrying')
    }
  }
  return concluded
}

/** A receipt that no node delivers is read again, like one that is not at the confirmation depth yet. */
function seenOf(network: Network, row: SentRow, shown: ShownReceipt, found: LookUp): Seen {
  if (shown === 'unread') return { row, receipt: undefined, outcome: { kind: 'unripe' } }
  return { row, receipt: shown, outcome: outcomeFor(network, row, shown, found) }
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

/** Returns since when failures of a payer's sponsored transactions count. */
export function failuresSince(clock: Ctx['clock']): Date {
  return instantOf(clock.now().getTime() - dayMs)
}

/** Records the outcome, with the fee that the operator paid as the sponsor. */
async function conclude(
  ctx: ActingCtx & Pick<System, 'db' | 'gasPrices' | 'metrics'>,
  { row, receipt, outcome }: Seen,
): Promise<void> {
  if (outcome.kind !== 'settled' && outcome.kind !== 'failed') return
  const weiUsed = row.settlement.sponsoredGas === '0' || receipt === undefined ? 0n : costOfReceipt(receipt)
  const gasNanoUsd = ctx.gasPrices.worthOf(requireNetwork(row.network), weiUsed)
  await ctx.db.tx(async (tx) => {
    if (outcome.kind === 'settled')
      return void (await recordSettled(ctx, tx, [{ id: row.id, txHash: row.txHash, gasNanoUsd }]))
    const failed = await recordFailed(ctx, tx, [failedFor(row, outcome.reason)])
    if (failed.size === 0) return
    if (weiUsed > 0n) await insertFailure(tx, row, { failedAt: ctx.clock.now(), since: failuresSince(ctx.clock) })
    changeGasLast(tx, await chargeGas(tx, [{ paymentId: row.id, nanoUsd: gasNanoUsd }]))
  })
}

function failedFor({ id, failureReason }: SentRow, reason: string) {
  return { id, status: 'settlement_failed', reason: failureReason ?? reason } as const
}

/**
 * Follows the transactions of payers on Tempo. Running it twice is harmless: a chain accepts the same bytes once, and a row
 * leaves `settling` once.
 */
export const followTransactions: RecurringTaskByNetwork<Deps> = {
  name: 'payments.follow-tempo',
  everyMs: 500,
  networks: ({ chains }) => chains.configured.filter(isTempo),
  isDue: isAnyDue,
  runOn: followTempo,
}

/** The transfer that a transaction was signed for. */
export interface ExpectedTransfer {
  readonly token: Address
  readonly from: Address
  readonly to: Address
  readonly amount: bigint
  readonly memo: Hex
}

type Refusal = TempoRefusal | 'malformed'

/** Why a payment ended without money; each has a sentence below. */
type TempoFailure =
  | 'transaction_reverted'
  | 'transaction_without_transfer'
  | 'transaction_expired'
  | `transaction_refused_${Refusal}`

/**
 * `absent`: in no block, and may still be included. `over`: in no block of this node and past its end, so that sending
 * it again is useless; but its failure is not proven yet.
 */
export type TempoOutcome =
  | { readonly kind: 'settled' }
  | { readonly kind: 'failed'; readonly reason: TempoFailure }
  | { readonly kind: 'unripe' | 'absent' | 'over' }

/**
 * Margin in seconds of chain time by which the last irreversible block must be later than the end: a node's receipt index may lag
 * by this much.
 */
const marginSeconds = 5n

/**
 * Decides the outcome of a sent transaction from the chain alone. It failed only if a receipt at the confirmation depth says so,
 * or if an irreversible block is later than the transaction's end and no block contains it.
 */
export function outcomeOf(
  sent: { readonly promised: ExpectedTransfer; readonly validBefore: bigint; readonly depth: number },
  receipt: Receipt | undefined,
  { head, finalized }: Pick<LookUp, 'head' | 'finalized'>,
): TempoOutcome {
  if (receipt !== undefined) {
    if (head.number - receipt.blockNumber + 1n < BigInt(sent.depth)) return { kind: 'unripe' }
    if (receipt.status === 'reverted') return { kind: 'failed', reason: 'transaction_reverted' }
    const isPaid = showsTransfer(receipt, sent.promised)
    return isPaid ? { kind: 'settled' } : { kind: 'failed', reason: 'transaction_without_transfer' }
  }
  if (finalized.timestampSeconds > sent.validBefore + marginSeconds)
    return { kind: 'failed', reason: 'transaction_expired' }
  return { kind: head.timestampSeconds >= sent.validBefore ? 'over' : 'absent' }
}

/** Whether a receipt shows that its transaction made the transfer; with any memo if `memo` is undefined. */
export function showsTransfer(
  { status, logs }: Pick<Receipt, 'status' | 'logs'>,
  promised: Omit<ExpectedTransfer, 'memo'> & { readonly memo: Hex | undefined },
): boolean {
  return status === 'success' && logs.some((log) => isExpectedTransfer(log, promised))
}

function isExpectedTransfer(log: Log, promised: Parameters<typeof showsTransfer>[1]): boolean {
  const made = decodeTransferWithMemoLog(log)
  return (
    made !== undefined &&
    sameAddress(log.address, promised.token) &&
    sameAddress(made.from, promised.from) &&
    sameAddress(made.to, promised.to) &&
    made.amount === promised.amount &&
    (promised.memo === undefined || made.memo === promised.memo.toLowerCase())
  )
}

const sentences: Readonly<Record<TempoFailure, string>> = {
  transaction_reverted: 'the transaction reverted',
  transaction_without_transfer: 'the transaction made no such transfer',
  transaction_expired: 'the transaction expired before a block took it',
  'transaction_refused_insufficient-balance': 'the payer holds too little of the token',
  'transaction_refused_insufficient-fee': 'the fee cannot be paid',
  'transaction_refused_out-of-gas': 'the gas limit is too low',
  transaction_refused_expired: 'the chain does not take the transaction at this time; check validBefore',
  'transaction_refused_nonce-too-high':
    'the nonce is ahead of the account’s next one, so that no block can take the transaction',
  'transaction_refused_nonce-too-low': 'the nonce is used, so that no block can take the transaction',
  transaction_refused_reverted: 'the token would not make the transfer',
  transaction_refused_malformed: 'the chain cannot read the transaction',
}

/** Returns the failure as a sentence for the payer. */
export function sentenceOf(reason: string | null): string {
  return Object.entries(sentences).find(([known]) => known === reason)?.[1] ?? 'the transaction failed'
}
