import { formatAmount, type Network, parseAmount, type TokenInfo, tokenBySymbol } from '@purser/protocol'
import type { z } from 'zod'
import { fail as failPartner } from '../../../partners/errors.ts'
import { instantOf } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { failPlatform, Problem } from '../../../platform/errors.ts'
import { id, type MasterWalletId, newId } from '../../../platform/ids.ts'
import type { Page } from '../../../platform/operation.ts'
import { openCursor, type PageQuery, pageOf } from '../../../platform/wire.ts'
import { networkFor } from '../../chains/index.ts'
import { areCovered, insertReservations, lockOwners, retryOnContention } from '../../funds/index.ts'
import { contendedBy, findHashes, planTransfer, type TransferPlan } from '../../transfers/index.ts'
import { findSource, reservePolicy, underPolicy } from '../../wallets/index.ts'
import { isCurrency } from '../bank-accounts/details.ts'
import { payoutAccountOf } from '../bank-accounts/payout-account.ts'
import { findBankAccount } from '../bank-accounts/store.ts'
import { begin } from './begin.ts'
import { setNextLook } from './due-store.ts'
import { fail } from './errors.ts'
import type { NewWithdrawal, Withdrawal } from './schema.ts'
import {
  findWithdrawal,
  insertWithdrawal,
  listWithdrawals,
  type NewWithdrawalRow,
  type WithdrawalId,
  type WithdrawalRow,
} from './store.ts'

/** In whole tokens; every token of the registry is worth a dollar. */
const minimum = 50n
/** Longer than the request that makes a withdrawal goes on with it by itself. */
const aloneMs = 60_000
const soonMs = 1_000

/** Bank days that a payout in the currency usually takes: Faster Payments and SEPA arrive within one, ACH within three. */
const usualDays = { GBP: 1, EUR: 1, USD: 3 } as const

/**
 * Pays money out to a bank account, once. The row and the Idempotency-Key commit before the partner is asked, the partner's payout is stored
 * before anything is sent to it, and from any of these points the job goes on should this process die. What fails before anything is
 * signed is refused; a partner or chain that does not answer now is asked again later.
 */
export async function createWithdrawal(ctx: Ctx, request: NewWithdrawal): Promise<Withdrawal> {
  const withdrawalId = await retryOnContention(ctx, () => store(ctx, request))
  return goOn(ctx, withdrawalId)
}

/** Stores the withdrawal with what it reserves: no partner is asked for a payout of money that another request has reserved. */
async function store(ctx: Ctx, request: NewWithdrawal): Promise<WithdrawalId> {
  const { row, masterWalletId, plan } = await planWithdrawal(ctx, request)
  await underPolicy(ctx, async (tx) => {
    await reserveFunds(ctx, tx, row, plan)
    const { token: symbol, rawAmount, decimals, bankAccountId: recipient } = row
    const movement = { masterWalletId, operation: 'withdraw', token: symbol, rawAmount, decimals, recipient } as const
    await reservePolicy(ctx, tx, { ...movement, subjectId: row.id })
    const nextLookAt = instantOf(row.createdAt.getTime() + aloneMs)
    await insertWithdrawal(tx, ctx.tenant, row, nextLookAt)
    const { walletId, bankAccountId, network, token } = row
    const details = { from: walletId, bankAccountId, network, token, amount: request.amount }
    await ctx.audit(tx, { action: 'withdrawals.create', target: row.id, details })
    await ctx.idempotency?.commit(tx, row.id)
  })
  return row.id
}

/** Until its transfer reserves the same. */
async function reserveFunds(
  ctx: Ctx,
  tx: Tx,
  { id: subjectId, rawAmount }: NewWithdrawalRow,
  plan: TransferPlan,
): Promise<void> {
  const { source, network, coin, snapshot } = plan
  const owner = source.address
  await lockOwners(tx, [{ network: network.name, owner }])
  const place = { tenant: ctx.tenant, network, walletId: source.id, owner, coin }
  const want = { rawAmount, gasLimit: 0n, dataBytes: 0 }
  const [isCovered] = await areCovered(ctx, tx, [{ snapshot, wants: [{ place, ...want }] }])
  if (isCovered !== true) throw contendedBy(plan)
  const none = { transactionId: null, authorizationNonce: null }
  const row = { network: network.name, owner, asset: coin.symbol, reason: 'withdrawal', subjectId, part: 0 } as const
  await insertReservations(tx, ctx.tenant, [{ ...row, ...want, ...none }])
}

/** The present state, for a repeat of a request whose answer was never given. */
export function withdrawalState(ctx: Ctx, withdrawalId: string): Promise<Withdrawal> {
  return answer(ctx, id('wdr').parse(withdrawalId))
}

async function goOn(ctx: Ctx, withdrawalId: WithdrawalId): Promise<Withdrawal> {
  try {
    await begin(ctx, await requireWithdrawal(ctx, withdrawalId))
    await setNextLook(ctx.db, ctx.tenant, withdrawalId, instantOf(ctx.clock.now().getTime() + soonMs))
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    ctx.log.warn({ err: error, withdrawalId }, 'a withdrawal could not be begun; it will be tried again')
  }
  return answer(ctx, withdrawalId)
}

async function answer(ctx: Ctx, withdrawalId: WithdrawalId): Promise<Withdrawal> {
  const row = await requireWithdrawal(ctx, withdrawalId)
  if (row.status === 'failed' && row.transferId === null)
    throw fail('withdrawal-refused', { withdrawalId, reason: row.reason })
  return shownOne(ctx, row)
}

interface Planned {
  readonly row: NewWithdrawalRow
  /** Whose spend policy judges it. */
  readonly masterWalletId: MasterWalletId
  /** Of its transfer, as a payment to itself. */
  readonly plan: TransferPlan
}

/** Refuses what cannot be paid out, before anything is stored and before the partner is asked for a payout. */
async function planWithdrawal(ctx: Ctx, request: NewWithdrawal): Promise<Planned> {
  const source = await findSource(ctx.db, ctx.tenant, request.fromWalletId)
  if (source === undefined) throw fail('wallet-not-found')
  const account = await findBankAccount(ctx.db, ctx.tenant, request.bankAccountId)
  if (account === undefined || !isCurrency(account.currency)) throw fail('bank-account-not-found')
  const network = networkFor(request.chain, ctx.tenant.environment)
  const token = tokenOf(network, request.token)
  refuseSmall(request.amount, token)
  const partner = ctx.offRamps[ctx.tenant.environment]
  if (partner === undefined) throw failPartner('partner-unavailable')
  // As a payment to itself: the partner says where the tokens go only once it is asked for a payout.
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
  const row: NewWithdrawalRow = {
    id: newId('wdr', ctx),
    walletId: source.id,
    fromAddress: source.address,
    chain,
    network: network.name,
    token: token.symbol,
    decimals: token.decimals,
    rawAmount: plan.rawAmount,
    bankAccountId: account.id,
    currency: account.currency,
    reference: request.reference ?? null,
    metadata: request.metadata ?? {},
    partner: partner.name,
    partnerAccountId: known.accountId,
    createdAt: ctx.clock.now(),
  }
  return { row, masterWalletId: source.masterWalletId, plan }
}

function tokenOf(network: Network, symbol: string): TokenInfo {
  const token = tokenBySymbol(network, symbol)
  if (token !== undefined) return token
  const known = network.tokens.map((one) => one.symbol).join(', ')
  const errors = [{ path: '/token', message: `is not a token of ${network.name} that is worth a dollar: ${known}` }]
  throw fail('token-not-supported', { errors })
}

function refuseSmall(text: string, { decimals }: TokenInfo): void {
  const raw = parseAmount(text, decimals)
  if (typeof raw !== 'bigint')
    throw failPlatform('validation-error', {
      errors: [{ path: '/amount', message: `must be a decimal amount with at most ${decimals} decimals: ${raw}` }],
    })
  if (raw < minimum * 10n ** BigInt(decimals)) throw fail('below-minimum', { minimum: minimum.toString() })
}

export async function getWithdrawal(ctx: Ctx, withdrawalId: WithdrawalId): Promise<Withdrawal> {
  return shownOne(ctx, await requireWithdrawal(ctx, withdrawalId))
}

async function requireWithdrawal(ctx: Ctx, withdrawalId: WithdrawalId): Promise<WithdrawalRow> {
  const row = await findWithdrawal(ctx.db, ctx.tenant, withdrawalId)
  if (row === undefined) throw fail('withdrawal-not-found')
  return row
}

export async function pageOfWithdrawals(ctx: Ctx, query: z.output<typeof PageQuery>): Promise<Page<Withdrawal>> {
  const rows = await listWithdrawals(ctx.db, ctx.tenant, { limit: query.limit, after: openCursor(query.cursor) })
  const page = pageOf(rows, query.limit, (row) => row.id)
  return { items: await shown(ctx, page.items), next: page.next }
}

/** As callers see them, in the same order. */
async function shown(ctx: Ctx, rows: readonly WithdrawalRow[]): Promise<Withdrawal[]> {
  const transferIds = rows.flatMap(({ transferId }) => (transferId === null ? [] : [transferId]))
  const hashes = await findHashes(ctx.db, ctx.tenant, transferIds)
  return rows.map((row) => shownWith(row, row.transferId === null ? undefined : hashes.get(row.transferId)))
}

async function shownOne(ctx: Ctx, row: WithdrawalRow): Promise<Withdrawal> {
  const [one] = await shown(ctx, [row])
  if (one === undefined) throw new Error('a withdrawal was not shown')
  return one
}

function shownWith(row: WithdrawalRow, txHash: string | undefined): Withdrawal {
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
