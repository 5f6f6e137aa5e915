import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import type { Operation } from '../../../platform/operation.ts'
import { EvmAddress } from '../../../platform/wire.ts'
import { approvalErrors } from '../../approvals/index.ts'
import { refuseServiceAddress } from '../../chains/index.ts'
import { LegacyCoin, legacyErrors, legacyPlaceOf, policyErrors, requireLegacyWallet } from '../../wallets/index.ts'
import { type Ctx, type Deps, operation } from '../ports.ts'
import { transferPlanErrors } from '../routes.ts'
import { queueTransfer } from '../transfer.ts'

/**
 * Queues a transfer of a coin from the legacy wallet: it is priced, counted against its spend policy as `legacyWithdraw`, stored with the
 * Idempotency-Key, and gets a response immediately. An event reports the outcome.
 */
async function withdrawLegacy(ctx: Ctx, { to, amount, coin }: NewLegacyWithdrawal): Promise<LegacyWithdrawal> {
  const { chain, token } = legacyPlaceOf(coin, ctx.tenant.environment)
  refuseServiceAddress(ctx, to, '/to')
  const wallet = await requireLegacyWallet(ctx)
  const { symbol } = token
  const moved = { fromChain: chain, toChain: chain, fromToken: symbol, toToken: symbol, toAddress: to, amount }
  const kind = { operation: 'legacyWithdraw', action: 'wallets.legacy.withdraw' } as const
  return queued(await queueTransfer(ctx, { fromWalletId: wallet.id, ...moved }, kind))
}

/** Response to a repeat whose first response was never stored. */
async function withdrawnLegacy(_ctx: unknown, transferId: string): Promise<LegacyWithdrawal> {
  return queued(id('wtx').parse(transferId))
}

function queued(transferId: LegacyWithdrawal['id']): LegacyWithdrawal {
  return { id: transferId, status: 'queued' }
}

const NewLegacyWithdrawal = z.strictObject({
  to: EvmAddress.describe('Address of the recipient.'),
  amount: z
    .string()
    .min(1)
    .max(100)
    .meta({ description: 'Decimal amount in whole coins, more than zero.', example: '12.5' }),
  coin: LegacyCoin.default('USDC_E').describe('The coin to send.'),
})
type NewLegacyWithdrawal = z.output<typeof NewLegacyWithdrawal>

const LegacyWithdrawal = z.strictObject({
  id: id('wtx').meta({ description: 'The transfer: see `transfers.get`.' }),
  status: z.literal('queued').describe('The transfer will be sent.'),
})
type LegacyWithdrawal = z.input<typeof LegacyWithdrawal>

named({ NewLegacyWithdrawal, LegacyWithdrawal })

export const legacyWithdrawOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.legacy.withdraw',
    needs: { role: 'member', scope: 'money', fresh: true },
    method: 'POST',
    path: '/wallets/withdraw',
    summary: 'Send a coin of the legacy wallet to an address.',
    description: [
      'Responds as soon as the withdrawal is stored; `transfer.completed` or `transfer.failed` reports the outcome, and its transfer can be read.',
      'Send an Idempotency-Key, so that a repeat never sends twice.',
    ].join(' '),
    input: NewLegacyWithdrawal,
    output: LegacyWithdrawal,
    status: 202,
    errors: { ...transferPlanErrors, ...policyErrors, ...approvalErrors, ...legacyErrors },
    // It queries a chain, which no database transaction waits for.
    idempotency: 'intent',
    resume: withdrawnLegacy,
    run: (ctx, { body }) => withdrawLegacy(ctx, body),
  }),
]
