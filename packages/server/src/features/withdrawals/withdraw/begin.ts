import { formatAmount, networkByName, sameAddress, tokenBySymbol } from '@purser/protocol'
import { fail as failPartner } from '../../../partners/errors.ts'
import type { OffRamp, Payout, RequestedPayout } from '../../../partners/offramp/port.ts'
import { Problem } from '../../../platform/errors.ts'
import { dropReservations, retryOnContention } from '../../funds/index.ts'
import { type NewTransfer, planTransfer, prepareTransfer, storeTransfer } from '../../transfers/index.ts'
import { isManagedAddress, releaseGas } from '../../wallets/index.ts'
import { findCustomerOfAccount } from '../bank-accounts/payout-account-store.ts'
import { findBankAccount, keepBankAccount } from '../bank-accounts/store.ts'
import type { Ctx } from '../ports.ts'
import { end } from './end.ts'
import { fail } from './errors.ts'
import { findWithdrawal, lockWithdrawal, setPayout, setTransfer, type WithdrawalRow } from './store.ts'

/** Milliseconds for which a payout may stay uncreated: in that time the partner recognizes a repeated request. */
const createPayoutMsMax = 20 * 3_600_000

/**
 * Takes a withdrawal from its row to its transfer, from any point where an earlier process stopped: the payout is created and stored at the
 * partner, and only then the tokens are reserved for its address. Two concurrent calls get the same payout and store one transfer. Throws
 * if the partner or the chain does not respond; it is then retried later.
 */
export async function begin(ctx: Ctx, row: WithdrawalRow): Promise<void> {
  const partner = partnerOf(ctx, row)
  const fault = await whyNotSent(ctx, partner, row)
  if (fault !== undefined) return endUnsent(ctx, row, fault)
  const agreed = await findWithdrawal(ctx.db, ctx.tenant, row.id)
  if (agreed?.depositAddress) await sendDeposit(ctx, agreed, agreed.depositAddress)
}

/**
 * Returns the partner with which the withdrawal began. Throws `partner-unavailable`, which is retried, if the partner is no longer configured,
 * because it may have the tokens.
 */
export function partnerOf(
  ctx: Pick<Ctx, 'offRamps' | 'tenant'>,
  { partner: name }: Pick<WithdrawalRow, 'partner'>,
): OffRamp {
  const partner = ctx.offRamps[ctx.tenant.environment]
  if (partner?.name !== name) throw failPartner('partner-unavailable')
  return partner
}

interface Fault {
  readonly reason: string
  /** The partner's own code. */
  readonly code?: string
}

/** Returns the time from which the partner could be called: of the request, or of the approval that the withdrawal waited for. */
export function startOf({ createdAt, releasedAt }: WithdrawalRow): Date {
  return releasedAt ?? createdAt
}

/** Creates the payout, or reads the one that was created. Returns why its tokens must not be sent. */
async function whyNotSent(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  partner: OffRamp,
  row: WithdrawalRow,
): Promise<Fault | undefined> {
  // Deleted while it waited for an approval, the partner or the chain: nobody expects money there any more.
  if ((await findBankAccount(ctx.db, ctx.tenant, row.bankAccountId)) === undefined)
    return { reason: 'bank-account-not-found' }
  const { payoutId } = row
  return payoutId === null ? createPayout(ctx, partner, row) : whyNotPayable(ctx, partner, { ...row, payoutId })
}

async function createPayout(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  partner: OffRamp,
  row: WithdrawalRow,
): Promise<Fault | undefined> {
  if (ctx.clock.now().getTime() - startOf(row).getTime() > createPayoutMsMax) return { reason: 'partner-unavailable' }
  const { customerId, ...requested } = await requestedPayout(ctx, row)
  if (customerId === undefined) throw new Error('a withdrawal to a payout account that was never created')
  const agreed = await partner.createPayout({
    ...requested,
    customerId,
    requestedAt: startOf(row),
    ...(row.reference === null ? {} : { reference: row.reference }),
  })
  if (!agreed.ok) return { reason: 'partner-refused', code: agreed.refusal.code }
  const { payoutId, deposit, partnerState } = agreed.value
  if (!isFit(agreed.value, row) || deposit === undefined) return { reason: 'partner-refused', code: partnerState }
  // A wallet of this service, of whatever organisation, is no address of the partner.
  if (await isManagedAddress(ctx.db, deposit.address)) return { reason: 'partner-refused', code: partnerState }
  const payout = { payoutId, depositAddress: deposit.address, partnerState }
  const isNew = await setPayout(ctx.db, ctx.tenant, row.id, payout)
  // A payout pays one withdrawal: tokens for another would be the partner's.
  return isNew ? undefined : { reason: 'partner-refused', code: partnerState }
}

/** Returns the fields by which the payout of a withdrawal is recognized. */
export async function requestedPayout(ctx: Pick<Ctx, 'db' | 'tenant'>, row: WithdrawalRow): Promise<RequestedPayout> {
  const network = networkByName(row.network)
  const token = network === undefined ? undefined : tokenBySymbol(network, row.token)
  if (network === undefined || token === undefined)
    throw new Error('a withdrawal of a token that this build does not have')
  const { id: key, partner, partnerAccountId: accountId, currency, rawAmount, fromAddress } = row
  const customerId = await findCustomerOfAccount(ctx.db, ctx.tenant, { partner, accountId })
  return { key, customerId, accountId, currency, network: network.name, token, rawAmount, fromAddress }
}

/** Whether the payout expects exactly the withdrawn amount, at another address than its source. */
function isFit({ awaitsDeposit, deposit }: Payout, { rawAmount, fromAddress }: WithdrawalRow): boolean {
  return awaitsDeposit && deposit?.rawAmount === rawAmount && !sameAddress(deposit.address, fromAddress)
}

/** Returns why the tokens must not be sent: a payout that was created long ago may have expired, or may expect another deposit now. */
async function whyNotPayable(
  ctx: Pick<Ctx, 'db' | 'tenant'>,
  partner: OffRamp,
  row: WithdrawalRow & { readonly payoutId: string },
): Promise<Fault | undefined> {
  const payout = await partner.readPayout(row.payoutId, await requestedPayout(ctx, row))
  if (payout?.awaitsDeposit !== true) return { reason: 'payout-lapsed' }
  const { deposit, partnerState: code } = payout
  const isSame =
    deposit !== undefined && row.depositAddress !== null && sameAddress(deposit.address, row.depositAddress)
  return isSame && isFit(payout, row) ? undefined : { reason: 'partner-refused', code }
}

async function sendDeposit(ctx: Ctx, row: WithdrawalRow, toAddress: `0x${string}`): Promise<void> {
  try {
    const request = transferOf(row, toAddress)
    // A concurrent reservation is not a lack of money: the transfer is planned again.
    await retryOnContention(ctx, async () => {
      const plan = await planTransfer(ctx, request, { except: row.id })
      await prepareTransfer(ctx, plan)
      await ctx.db.tx(async (tx) => {
        const { transferId, status } = await lockWithdrawal(tx, ctx.tenant, row.id)
        if (transferId !== null || status === 'failed') return
        if (!(await keepBankAccount(tx, ctx.tenant, row.bankAccountId))) throw fail('bank-account-not-found')
        await dropReservations(tx, row.id)
        const stored = await storeTransfer(ctx, tx, { request, plan })
        await setTransfer(tx, ctx.tenant, row.id, stored)
        // The transfer counts its own.
        await releaseGas(tx, row.id)
      })
    })
  } catch (error) {
    if (!(error instanceof Problem) || error.entry.status >= 500) throw error
    await endUnsent(ctx, row, { reason: error.code })
  }
}

/** The on-chain part of a withdrawal, as a transfer request. */
function transferOf(
  row: Pick<WithdrawalRow, 'walletId' | 'chain' | 'token' | 'rawAmount' | 'decimals'>,
  toAddress: `0x${string}`,
): NewTransfer {
  const { walletId, chain, token, rawAmount, decimals } = row
  const amount = formatAmount(rawAmount, decimals)
  return {
    fromWalletId: walletId,
    fromChain: chain,
    fromToken: token,
    toAddress,
    toChain: chain,
    toToken: token,
    amount,
  }
}

/** Fails it unless its transfer was stored meanwhile, by a process whose reservation looked like a lack of money. */
async function endUnsent(
  ctx: Pick<Ctx, 'audit' | 'clock' | 'db' | 'log' | 'publish' | 'tenant'>,
  { id: withdrawalId }: WithdrawalRow,
  { reason, code }: Fault,
): Promise<void> {
  await ctx.db.tx(async (tx) => {
    const row = await lockWithdrawal(tx, ctx.tenant, withdrawalId)
    if (row.transferId !== null || row.status === 'failed') return
    await end(ctx, tx, row, { reason, refund: 'none', isUnspent: true })
    tx.afterCommit(() => ctx.log.info({ withdrawalId, reason, code }, 'a withdrawal failed before anything was signed'))
  })
}
