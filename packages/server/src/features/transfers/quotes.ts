import { formatAmount } from '@purser/protocol'
import { instantOf } from '../../platform/clock.ts'
import { newId } from '../../platform/ids.ts'
import { type RecurringTask, repeatWhile } from '../../platform/recurring-task.ts'
import { policyWouldDeny } from '../wallets/index.ts'
import { floorOfQuote, planTransfer } from './plan.ts'
import type { Ctx, Deps, TransferPlan } from './ports.ts'
import { deleteExpiredQuotes, insertQuote, type QuoteRow } from './quote-store.ts'
import { outgoing } from './record.ts'
import type { NewTransferQuote, TransferQuote } from './schema.ts'

const quoteMs = 60_000
/** For this long an expired quote is reported as expired, and as unknown afterwards. */
const expiredKeptMs = 3_600_000
const sweptAtOnce = 1_000

/** Returns the cost, the route and the least amount that arrives; moves nothing. A transfer may use the quote for 60 seconds. */
export async function quoteTransfer(ctx: Ctx, request: NewTransferQuote): Promise<TransferQuote> {
  const plan = await planTransfer(ctx, request, { readFloor: floorOfQuote })
  const row = rowOf(ctx, request, plan)
  await insertQuote(ctx.db, ctx.tenant, row)
  const { coin, toCoin, feeCoin, route, routeReason } = plan
  const amount = formatAmount(plan.rawAmount, coin.decimals)
  return {
    quoteId: row.id,
    expiresAt: row.expiresAt,
    fromChain: plan.fromChain,
    toChain: request.toChain,
    fromToken: request.fromToken,
    toToken: request.toToken,
    amount,
    toAmount: plan.quote === undefined ? amount : formatAmount(plan.quote.rawOut, toCoin.decimals),
    minToAmount: formatAmount(row.rawOutMin, toCoin.decimals),
    feeAmount: formatAmount(plan.rawFee, feeCoin.decimals),
    feeToken: feeCoin.symbol,
    route,
    routeReason,
    deniedBy: await policyWouldDeny(ctx, outgoing(request, plan)),
  }
}

function rowOf(
  ctx: Pick<Ctx, 'clock' | 'random'>,
  { fromToken, toToken, toAddress }: NewTransferQuote,
  plan: TransferPlan,
): QuoteRow {
  const { source, network, target, rawAmount, route, quote } = plan
  return {
    id: newId('qte', ctx),
    walletId: source.id,
    toAddress,
    fromNetwork: network.name,
    toNetwork: target.name,
    fromToken,
    toToken,
    rawAmount,
    route,
    partner: quote?.partner ?? null,
    rawOutMin: quote?.rawOutMin ?? rawAmount,
    expiresAt: instantOf(ctx.clock.now().getTime() + quoteMs),
  }
}

/** Deletes quotes that expired an hour ago, in batches. Idempotent. */
export const expireQuotes: RecurringTask<Deps> = {
  name: 'transfers.sweep-quotes',
  everyMs: 60_000,
  async run(ctx) {
    const before = instantOf(ctx.clock.now().getTime() - expiredKeptMs)
    await repeatWhile(ctx, async () => (await deleteExpiredQuotes(ctx.db, before, sweptAtOnce)) === sweptAtOnce)
  },
}
