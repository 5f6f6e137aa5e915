import { id } from '../../../platform/ids.ts'
import { legacyPlaceOf, refuseServiceAddress, requireLegacyWallet } from '../../wallets/index.ts'
import type { Ctx } from '../ports.ts'
import { queueTransfer } from '../transfer.ts'
import type { LegacyWithdrawal, NewLegacyWithdrawal } from './schema.ts'

/**
 * Queues a transfer of a coin from the legacy wallet: it is priced, counted against its spend policy as `legacyWithdraw`, stored with the
 * Idempotency-Key, and answered immediately. An event reports the outcome.
 */
export async function withdrawLegacy(ctx: Ctx, { to, amount, coin }: NewLegacyWithdrawal): Promise<LegacyWithdrawal> {
  const { chain, token } = legacyPlaceOf(coin, ctx.tenant.environment)
  refuseServiceAddress(ctx, to, '/to')
  const wallet = await requireLegacyWallet(ctx)
  const { symbol } = token
  const moved = { fromChain: chain, toChain: chain, fromToken: symbol, toToken: symbol, toAddress: to, amount }
  const kind = { operation: 'legacyWithdraw', action: 'wallets.legacy.withdraw' } as const
  return queued(await queueTransfer(ctx, { fromWalletId: wallet.id, ...moved }, kind))
}

/** Response to a repeat whose first response was never stored. */
export async function withdrawnLegacy(_ctx: Ctx, transferId: string): Promise<LegacyWithdrawal> {
  return queued(id('wtx').parse(transferId))
}

function queued(transferId: LegacyWithdrawal['id']): LegacyWithdrawal {
  return { id: transferId, status: 'queued' }
}
