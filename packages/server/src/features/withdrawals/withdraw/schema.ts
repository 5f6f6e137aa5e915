import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import {
  CreatedAt,
  FilteredMetadata,
  Instant,
  metadataFilter,
  PageQuery,
  periodFilters,
  StoredMetadata,
  text,
} from '../../../platform/wire.ts'
import { approvalOf } from '../../approvals/index.ts'
import { ChainName } from '../../chains/index.ts'

const referenceLengthMax = 140

/** Request for a withdrawal. `fromWalletType` may be omitted: the id's prefix implies it. */
export const NewWithdrawal = z.strictObject({
  fromWalletId: z.union([id('mwt'), id('cad')]).describe('The master wallet or child address that pays.'),
  fromWalletType: z.enum(['master', 'child']).optional().describe('Kind of the wallet.'),
  amount: z
    .string()
    .min(1)
    .max(100)
    .meta({ description: 'Decimal amount in whole tokens, 50 or more.', example: '125' }),
  token: z.string().min(1).max(32).meta({ example: 'USDC' }).describe('Symbol of the token that is sold.'),
  chain: ChainName.describe('The chain that the money leaves.'),
  bankAccountId: id('bac'),
  reference: text(referenceLengthMax, 1)
    .optional()
    .meta({ description: 'Text on the bank statement: GBP 1-18, EUR 6-140, USD 1-10 characters.' }),
  metadata: FilteredMetadata.optional(),
})
export type NewWithdrawal = z.output<typeof NewWithdrawal>

export const WithdrawalStatus = z.enum(['pending_conversion', 'conversion_complete', 'completed', 'failed'])

export const WithdrawalListQuery = PageQuery.extend({
  ...periodFilters,
  status: WithdrawalStatus.optional().describe('Only withdrawals in this state.'),
  ...metadataFilter,
})
export type WithdrawalListQuery = z.output<typeof WithdrawalListQuery>

export const Refund = z.enum(['none', 'expected', 'done', 'held'])

export const Withdrawal = z.strictObject({
  id: id('wdr'),
  fromWalletId: z.union([id('mwt'), id('cad')]).describe('The wallet that pays.'),
  status: WithdrawalStatus.describe(
    '`pending_conversion` until the partner has the tokens and sold them, then `conversion_complete`, and `completed` when the bank has the money.',
  ),
  txHash: z
    .string()
    .nullable()
    .meta({ description: 'The transaction that moved the tokens to the partner; null until it is signed.' }),
  amount: z.string().describe('Amount in whole tokens.'),
  token: z.string().describe('Symbol of the token that is sold.'),
  chain: ChainName.describe('The chain that the money leaves.'),
  bankAccountId: id('bac'),
  currency: z.string().meta({ description: 'The currency of the bank account.' }),
  reference: z.string().nullable().describe('Text on the bank statement of the receiver; null if none was given.'),
  metadata: StoredMetadata,
  approval: approvalOf,
  feeAmount: z
    .string()
    .nullable()
    .meta({ description: "The partner's fee, in whole tokens; null until the partner reports it." }),
  exchangeRate: z.string().nullable().describe('Exchange rate, as the partner reports it; null until then.'),
  payoutAmount: z
    .string()
    .nullable()
    .meta({ description: 'The amount that the bank receives, in currency, as the partner reports it.' }),
  estimatedDays: z.number().int().meta({ description: 'Usual number of bank days for this currency.' }),
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  refund: Refund.nullable().meta({
    description: 'For a failed withdrawal, the refund of its tokens, as the partner reports it.',
  }),
  createdAt: CreatedAt,
  completedAt: Instant.nullable().describe('When the bank received the money; null until then.'),
  failedAt: Instant.nullable().describe('When it failed; null if it did not.'),
})
export type Withdrawal = z.input<typeof Withdrawal>

export const WithdrawalParams = z.strictObject({ id: id('wdr') })

named({ NewWithdrawal, Withdrawal })
