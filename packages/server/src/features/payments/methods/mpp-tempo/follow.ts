import {
  type Address,
  decodeTransferWithMemoLog,
  type Hex,
  isTempo,
  type Network,
  requireNetwork,
  sameAddress,
} from '@purser/protocol'
import type { Chain, Head, Log, LookUp, Receipt, ShownReceipt, TempoRefusal } from '../../../../chain/port.ts'
import { instantOf } from '../../../../platform/clock.ts'
import type { ActingCtx } from '../../../../platform/ctx.ts'
import type { PaymentId } from '../../../../platform/ids.ts'
import { type RecurringTaskByNetwork, repeatWhile } from '../../../../platform/recurring-task.ts'
import { changeGasLast, costOfReceipt } from '../../../plans/index.ts'
import { sanctionedReason } from '../../credential.ts'
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

/** The nodes from which outcomes are read: the preferred one, which a majority must confirm, or the others too where it does not. */
type Source = 'preferred' | 'all'

/** Reads the chain for one payment and records its outcome if there is one; returns whether there was. */
export async function followPayment(ctx: System, network: Network, row: SentRow, source: Source): Promise<boolean> {
  const found = await ctx.chains.on(network).lookUp([row.txHash])
  return (await concludeAll(ctx, network, [seenOf(ctx, row, found.receipts[0], found)], { ...found, source })).size > 0
}

/**
 * Finds the outcomes of the open payments that are due: each settles or fails by what the chain reports, otherwise the same bytes
 * are sent once more. This completes the work of processes that died.
 */
async function followTempo(ctx: System, network: Network): Promise<void> {
  const { cursors } = ctx.unsettledChecks
  const followPage = async () => {
    const rows = await takeDue(ctx.db, network.name, { most: pageRows, cursors })
    if (rows.length > 0) await followRows(ctx, network, rows)
    return rows.length >= pageRows
  }
  await repeatWhile(ctx, followPage, pagesMax)
}

/** Records the outcomes first: no payment waits for the transactions of others to be sent. */
async function followRows(ctx: System, network: Network, rows: readonly SentRow[]): Promise<void> {
  const chain = ctx.chains.on(network)
  const found = await chain.lookUp(rows.map(({ txHash }) => txHash))
  const all = rows.map((row, index) => seenOf(ctx, row, found.receipts[index], found))
  const concluded = await concludeAll(ctx, network, all, { ...found, source: 'all' })
  const seen = all.filter(({ row }) => !concluded.has(row.id))
  const absent = seen.flatMap(({ row, outcome }) => (outcome.kind === 'absent' ? [row] : []))
  // A receipt that a majority does not confirm may be invented.
  const doubted = seen.flatMap(({ row, outcome }) => (isOpen(outcome) || isOver(ctx, row) ? [] : [row]))
  const unmined = await filterUnmined(ctx, network.name, doubted)
  const left = [...absent, ...unmined].filter(({ failureReason }) => failureReason === null)
  // A process of an earlier release marks a refused one and frees nothing.
  const marked = seen.flatMap(({ row, outcome }) =>
    isOpen(outcome) && row.failureReason !== null && row.hasPlace ? [row] : [],
  )
  await freeRefused(ctx, marked)
  if (left.length === 0 || !ctx.witness.isCurrent()) return
  // The request that recorded a payment may have ended before the witness covered it. Sent uncovered, its money would be credited to nobody after a
  // restore that lost the record.
  await ctx.witness.cover()
  // Hours may lie between the request and the first node that answers.
  const listed = left.flatMap((row) => {
    const failureReason = sanctionedReason({ screening: ctx.screening, tenant: row }, row)
    return failureReason === undefined ? [] : [{ ...row, failureReason }]
  })
  await freeRefused(ctx, await filterUnmined(ctx, network.name, listed))
  const allowed = left.filter(({ id }) => !listed.some((one) => one.id === id))
  const sent = await chain.sendTempo(allowed.map(({ settlement }) => settlement.raw))
  const refused = allowed.flatMap((row, index) => {
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
 * Records the outcomes that a majority of the nodes confirms; returns their payments. Where a majority does not confirm the preferred node's receipt, the one that
 * most nodes show is taken: the preferred node may have invented its own. Whether a transaction past its end has failed is also the majority's decision.
 */
async function concludeAll(
  ctx: System,
  network: Network,
  seen: readonly Seen[],
  { head, source }: Pick<LookUp, 'head'> & { readonly source: Source },
): Promise<ReadonlySet<PaymentId>> {
  const chain = ctx.chains.on(network)
  const own = await confirmMined(chain, seen)
  const unsure = source === 'all' ? own.unsure : []
  const others = await chain.findReceipts(unsure.map(({ row }) => row.txHash))
  const found = unsure.flatMap(({ row }, index) => {
    const other = others[index]
    return other === undefined ? [] : [seenOf(ctx, row, other.receipt, other)]
  })
  const mined = [...own.sure, ...(await confirmMined(chain, found)).sure]
  const isPast = (row: SentRow) => isOver(ctx, row) || head.timestampSeconds >= BigInt(row.settlement.validBefore)
  const expired = seen
    .filter(({ row }) => !mined.some((one) => one.row.id === row.id) && isPast(row))
    .map(({ row }): Seen => ({ row, receipt: undefined, outcome: { kind: 'failed', reason: 'transaction_expired' } }))
  const lost = await chain.tempoTransactionsLost(
    expired.map(({ row }) => ({ hash: row.txHash, validBefore: BigInt(row.settlement.validBefore) })),
  )
  const concluded = new Set<PaymentId>()
  for (const one of [...mined, ...expired.filter((_, index) => lost[index] === 'yes')]) {
    try {
      await conclude(ctx, one)
      concluded.add(one.row.id)
    } catch (error) {
      ctx.log.error({ err: error, paymentId: one.row.id }, 'the outcome of a payment could not be recorded; retrying')
    }
  }
  return concluded
}

/** Of those that are mined deep enough by their receipts, which of the receipts a majority confirms. */
async function confirmMined(chain: Chain, seen: readonly Seen[]) {
  const mined = seen.flatMap((one) =>
    isOpen(one.outcome) || one.receipt === undefined ? [] : [{ ...one, receipt: one.receipt }],
  )
  const verdicts = await chain.confirmReceipts(mined.map(({ receipt }) => receipt))
  return {
    sure: mined.filter((_, index) => verdicts[index] === 'yes'),
    unsure: mined.filter((_, index) => verdicts[index] !== 'yes'),
  }
}

/** A receipt that no node delivers is read again, like one that is not at the confirmation depth yet. */
function seenOf(ctx: Pick<System, 'clock'>, row: SentRow, shown: ShownReceipt, { head }: Pick<LookUp, 'head'>): Seen {
  if (shown === 'unread') return { row, receipt: undefined, outcome: { kind: 'unripe' } }
  if (shown === undefined) return { row, receipt: shown, outcome: { kind: isOver(ctx, row) ? 'over' : 'absent' } }
  const { asset, settlement, payTo, rawAmount, network } = row
  const promised = { token: asset, from: settlement.from, to: payTo, amount: rawAmount, memo: settlement.memo }
  const { confirmationDepth: depth } = requireNetwork(network)
  return { row, receipt: shown, outcome: outcomeOf({ promised, depth }, shown, head) }
}

/** Whether our clock is past the end of the transaction, so that sending it again is useless. No node decides this: one could hide a payment's failure, or keep it unsent. */
function isOver({ clock }: Pick<System, 'clock'>, { settlement }: SentRow): boolean {
  return clock.now().getTime() >= Number(settlement.validBefore) * 1_000
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

/** The reason why a payment ended without money; each has a sentence below. */
type TempoFailure =
  | 'transaction_reverted'
  | 'transaction_without_transfer'
  | 'transaction_expired'
  | `transaction_refused_${Refusal}`

/** `absent`: in no block, and may still be included. `over`: in no block of this node and past its end; but its failure is not proven yet. */
type TempoOutcome =
  | { readonly kind: 'settled' }
  | { readonly kind: 'failed'; readonly reason: TempoFailure }
  | { readonly kind: 'unripe' | 'absent' | 'over' }

/** Decides the outcome of a sent transaction by its receipt, once that is at the confirmation depth. */
export function outcomeOf(
  sent: { readonly promised: ExpectedTransfer; readonly depth: number },
  receipt: Receipt,
  head: Pick<Head, 'number'>,
): TempoOutcome {
  if (head.number - receipt.blockNumber + 1n < BigInt(sent.depth)) return { kind: 'unripe' }
  if (receipt.status === 'reverted') return { kind: 'failed', reason: 'transaction_reverted' }
  const isPaid = showsTransfer(receipt, sent.promised)
  return isPaid ? { kind: 'settled' } : { kind: 'failed', reason: 'transaction_without_transfer' }
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
