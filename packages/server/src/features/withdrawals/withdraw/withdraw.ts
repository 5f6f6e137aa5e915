import { formatAmount, type Network, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import { fail as failPartner } from '../../../partners/errors.ts'
import type { OffRamp } from '../../../partners/offramp/port.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform, Problem } from '../../../platform/errors.ts'
import { id, type MasterWalletId, newId } from '../../../platform/ids.ts'
import { type Page, Reply } from '../../../platform/operation.ts'
import { openAmount, openCursor, pageOf } from '../../../platform/wire.ts'
import { type ApprovalId, type ApprovalState, approvalStates, requestApproval } from '../../approvals/index.ts'
import { refuseEndedCaller } from '../../callers/index.ts'
import { networkFor } from '../../chains/index.ts'
import { contendedBy, insertReservations, lockCovered, retryOnContention } from '../../funds/index.ts'
import { findHashes, gasCostOf, planTransfer, type TransferPlan } from '../../transfers/index.ts'
import { type Gas, reservePolicy, type SourceWallet, underPolicy } from '../../wallets/index.ts'
import { payoutAccountOf } from '../bank-accounts/payout-account.ts'
import { type Currency, isCurrency } from '../bank-accounts/rules.ts'
import { findBankAccount } from '../bank-accounts/store.ts'
import type { Ctx } from '../ports.ts'
import { begin } from './begin.ts'
import { fail } from './errors.ts'
import type { NewWithdrawal, Withdrawal, WithdrawalListQuery } from './schema.ts'
import {
  findWithdrawal,
  insertWithdrawal,
  listWithdrawals,
  type NewWithdrawalRow,
  setNextPoll,
  type WithdrawalId,
  type WithdrawalRow,
} from './store.ts'

/** In whole tokens; every token of the registry is worth a dollar. */
const minimum = 50n
/** Longer than the request that creates a withdrawal continues it by itself. */
const requestMsMax = 60_000
const soonMs = 1_000

/** Bank days that a payout in the currency usually takes: Faster Payments and SEPA arrive within one, ACH within three. */
const usualDays = { GBP: 1, EUR: 1, USD: 3 } as const

/**
 * Pays money to a bank account, once. The row and the Idempotency-Key commit before the partner is called, and the partner's payout is
 * stored before anything is sent to it; a recurring task continues from any of these points if this process dies. A failure before anything is
 * signed is returned as an error; a partner or chain that does not respond is called again later. One that needs an approval is answered
 * with 202 at once, and begins when a person approves it.
 */
export async function createWithdrawal(ctx: Ctx, request: NewWithdrawal): Promise<Withdrawal | Reply> {
  const { id: withdrawalId, approvalId } = await retryOnContention(ctx, () => store(ctx, request))
  return approvalId === null ? advance(ctx, withdrawalId) : respond(ctx, withdrawalId)
}

type Stored = Pick<NewWithdrawalRow, 'id' | 'approvalId'>

/** Stores the withdrawal with its reservations, so that no payout is created for money that another request has reserved. */
async function store(ctx: Ctx, request: NewWithdrawal): Promise<Stored> {
  const { row, masterWalletId, plan } = await planWithdrawal(ctx, request)
  return underPolicy(ctx, async (tx) => {
    await reserveFunds(ctx, tx, row, plan)
    const approvalId = await approvalFor(ctx, tx, row, { masterWalletId, gas: gasCostOf(plan) })
    const nextCheckAt = approvalId === null ? instantOf(row.createdAt.getTime() + requestMsMax) : null
    await insertWithdrawal(tx, ctx.tenant, { ...row, approvalId }, nextCheckAt)
    const { walletId, bankAccountId, network, token } = row
    const details = { from: walletId, bankAccountId, network, token, amount: request.amount }
    await ctx.audit(tx, { action: 'withdrawals.create', target: row.id, details })
    await refuseEndedCaller(ctx, tx)
    await ctx.idempotency?.commit(tx, row.id)
    return { id: row.id, approvalId }
  })
}

/** Counts the withdrawal and the gas of its transfer against the wallet's policy, and requests the approval that the policy requires; null if it requires none. */
async function approvalFor(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'publish' | 'random' | 'tenant'>,
  tx: Tx,
  row: PlannedRow,
  { masterWalletId, gas }: { readonly masterWalletId: MasterWalletId; readonly gas: Gas | undefined },
): Promise<ApprovalId | null> {
  const { id: subjectId, walletId, chain, token, rawAmount, decimals, bankAccountId: recipient, reference: note } = row
  const movement = { masterWalletId, operation: 'withdraw', token, rawAmount, decimals, recipient, subjectId } as const
  const approvalAbove = await reservePolicy(ctx, tx, { ...movement, gas })
  if (approvalAbove === undefined) return null
  const about = { walletId, kind: 'withdrawal', paymentId: null, chain, toChain: chain, toToken: token, note } as const
  const approvalId = await requestApproval(ctx, tx, { ...movement, ...about, approvalAbove })
  if (approvalId instanceof Problem) throw approvalId
  return approvalId
}

/** Reserves the same amounts as its transfer, until that exists. */
async function reserveFunds(
  ctx: Pick<Ctx, 'deposits' | 'tenant'>,
  tx: Tx,
  { id: subjectId, rawAmount }: PlannedRow,
  plan: TransferPlan,
): Promise<void> {
  const { source, network, coin, snapshot } = plan
  const asset = { tenant: ctx.tenant, network, walletId: source.id, owner: source.address, coin }
  const want = { asset, rawAmount, gasLimit: 0n, dataBytes: 0 }
  const [isCovered] = await lockCovered(ctx, tx, [{ snapshot, wants: [want] }])
  if (isCovered !== true) throw contendedBy(plan)
  const subject = { reason: 'withdrawal', subjectId, part: 0, transactionId: null, authorizationNonce: null } as const
  await insertReservations(tx, ctx.tenant, [{ ...want, ...subject }])
}

/** The present state, for a repeated request whose first response was never stored. */
export function withdrawalState(ctx: Pick<Ctx, 'db' | 'tenant'>, withdrawalId: string): Promise<Withdrawal | Reply> {
  return respond(ctx, id('wdr').parse(withdrawalId))
}

async function advance(ctx: Ctx, withdrawalId: WithdrawalId): Promise<Withdrawal | Reply> {
  try {
    await begin(ctx, await requireWithdrawal(ctx, withdrawalId))
    await setNextPoll(ctx.db, ctx.tenant, withdrawalId, instantOf(ctx.clock.now().getTime() + soonMs))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    ctx.log.warn({ err: error, withdrawalId }, 'a withdrawal could not begin; retrying')
  }
  return respond(ctx, withdrawalId)
}

async function respond(ctx: Pick<Ctx, 'db' | 'tenant'>, withdrawalId: WithdrawalId): Promise<Withdrawal | Reply> {
  const row = await requireWithdrawal(ctx, withdrawalId)
  if (row.approvalId !== null) {
    const withdrawal = await shownOne(ctx, row)
    return withdrawal.approval?.status === 'waiting' ? new Reply(202, withdrawal) : withdrawal
  }
  if (row.status === 'failed' && row.transferId === null)
    throw fail('withdrawal-refused', { withdrawalId, reason: row.reason })
  return shownOne(ctx, row)
}

type PlannedRow = Omit<NewWithdrawalRow, 'approvalId'>

interface Planned {
  readonly row: PlannedRow
  /** The wallet whose spend policy applies. */
  readonly masterWalletId: MasterWalletId
  /** Plan of its transfer, as a payment to the wallet itself. */
  readonly plan: TransferPlan
}

/** Refuses what cannot be paid out, before anything is stored and before the partner is called. */
async function planWithdrawal(ctx: Ctx, request: NewWithdrawal): Promise<Planned> {
  const source = await ctx.findSource(ctx.db, ctx.tenant, request.fromWalletId)
  if (source === undefined) throw fail('wallet-not-found')
  const account = await findBankAccount(ctx.db, ctx.tenant, request.bankAccountId)
  if (account === undefined || !isCurrency(account.currency)) throw fail('bank-account-not-found')
  const network = networkFor(request.chain, ctx.tenant.environment)
  const token = tokenOf(network, request.token)
  refuseSmall(request.amount, token)
  const partner = ctx.offRamps[ctx.tenant.environment]
  if (partner === undefined) throw failPartner('partner-unavailable')
  refuseUntaken(partner, { network, token })
  refuseReference(request, { partner, currency: account.currency })
  // Planned as a payment to itself: the partner names the receiving address only when the payout is created.
  const { fromWalletId, fromWalletType, chain, amount } = request
  const moved = { fromChain: chain, toChain: chain, fromToken: token.symbol, toToken: token.symbol }
  const plan = await planTransfer(ctx, {
    fromWalletId,
    fromWalletType,
    ...moved,
    amount,
    toAddress: source.address,
  })
  const known = await payoutAccountOf(ctx, partner, account)
  if (!known.ok && known.code === undefined) throw fail('bank-account-not-found')
  if (!known.ok) throw fail('bank-account-refused', { reason: known.code })
  const paying = { partner: partner.name, partnerAccountId: known.accountId, currency: account.currency }
  const row: PlannedRow = { ...rowOf(ctx, request, { source, network, token }), ...paying, rawAmount: plan.rawAmount }
  return { row, masterWalletId: source.masterWalletId, plan }
}

interface Moving {
  readonly source: SourceWallet
  readonly network: Network
  readonly token: TokenInfo
}

/** Returns the columns that the request and its wallet determine. */
function rowOf(ctx: Pick<Ctx, 'clock' | 'random'>, request: NewWithdrawal, { source, network, token }: Moving) {
  return {
    id: newId('wdr', ctx),
    walletId: source.id,
    fromAddress: source.address,
    chain: request.chain,
    network: network.name,
    token: token.symbol,
    decimals: token.decimals,
    bankAccountId: request.bankAccountId,
    reference: request.reference ?? null,
    metadata: request.metadata ?? {},
    createdAt: ctx.clock.now(),
  }
}

function tokenOf(network: Network, symbol: string): TokenInfo {
  const token = tokenBySymbol(network, symbol)
  if (token !== undefined) return token
  const known = network.tokens.map((one) => one.symbol).join(', ')
  const errors = [{ path: '/token', message: `is not a US dollar token of ${network.name}: ${known}` }]
  throw fail('token-not-supported', { errors })
}

function refuseSmall(text: string, { decimals }: TokenInfo): void {
  const raw = openAmount(text, { path: '/amount', decimals, least: 0n })
  if (raw < minimum * 10n ** BigInt(decimals))
    throw fail('below-minimum', {
      minimum: minimum.toString(),
      detail: `A withdrawal is at least ${minimum} US dollars. Nothing was moved.`,
    })
}

/** Refuses tokens that the partner never takes: it would refuse the payout only after the withdrawal is stored. */
function refuseUntaken(partner: OffRamp, { network, token }: Pick<Moving, 'network' | 'token'>): void {
  const untaken = partner.whyNotTaken({ network: network.name, token })
  if (untaken === undefined) return
  const errors = [{ path: `/${untaken.member}`, message: untaken.message }]
  throw fail('token-not-supported', { errors })
}

/** Refuses a reference that the bank's payment cannot have: the partner would refuse the payout only after the withdrawal is stored. */
function refuseReference(
  { reference }: NewWithdrawal,
  { partner, currency }: { readonly partner: OffRamp; readonly currency: Currency },
): void {
  const message = reference === undefined ? undefined : partner.whyNotReference(currency, reference)
  if (message !== undefined) throw failPlatform('validation-error', { errors: [{ path: '/reference', message }] })
}

export async function getWithdrawal(ctx: Pick<Ctx, 'db' | 'tenant'>, withdrawalId: WithdrawalId): Promise<Withdrawal> {
  return shownOne(ctx, await requireWithdrawal(ctx, withdrawalId))
}

async function requireWithdrawal(ctx: Pick<Ctx, 'db' | 'tenant'>, withdrawalId: WithdrawalId): Promise<WithdrawalRow> {
  const row = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
  if (row === undefined) throw fail('withdrawal-not-found')
  return row
}

export async function pageOfWithdrawals(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  query: WithdrawalListQuery,
): Promise<Page<Withdrawal>> {
  const { limit, cursor, ...filters } = query
  const rows = await listWithdrawals(ctx.db, ctx.tenant, filters, { limit, after: openCursor(cursor) })
  const page = pageOf(rows, query.limit, (row) => row.id)
  return { ...page, items: await shown(ctx, page.items) }
}

/** Withdrawals as callers see them, in the same order. */
async function shown(ctx: Pick<Ctx, 'db' | 'tenant'>, rows: readonly WithdrawalRow[]): Promise<Withdrawal[]> {
  const transferIds = rows.flatMap(({ transferId }) => (transferId === null ? [] : [transferId]))
  const hashes = await findHashes(ctx.db, ctx.tenant, transferIds)
  const approvals = await approvalStates(ctx, rows)
  return rows.map((row) => {
    const txHash = row.transferId === null ? undefined : hashes.get(row.transferId)
    return shownWith(row, { txHash, approval: approvals.get(row.approvalId) ?? null })
  })
}

async function shownOne(ctx: Pick<Ctx, 'db' | 'tenant'>, row: WithdrawalRow): Promise<Withdrawal> {
  const [one] = await shown(ctx, [row])
  if (one === undefined) throw new Error('a withdrawal has no public form')
  return one
}

function shownWith(
  row: WithdrawalRow,
  { txHash, approval }: { readonly txHash: string | undefined; readonly approval: ApprovalState | null },
): Withdrawal {
  return {
    id: row.id,
    fromWalletId: row.walletId,
    status: row.status,
    txHash: txHash ?? null,
    amount: formatAmount(row.rawAmount, row.decimals),
    token: row.token,
    chain: row.chain,
    bankAccountId: row.bankAccountId,
    currency: row.currency,
    reference: row.reference,
    metadata: row.metadata,
    approval,
    feeAmount: row.feeAmount,
    exchangeRate: row.exchangeRate,
    payoutAmount: row.payoutAmount,
    estimatedDays: usualDays[row.currency],
    reason: row.reason,
    refund: row.refund,
    createdAt: row.createdAt,
    completedAt: row.completedAt,
    failedAt: row.failedAt,
  }
}
