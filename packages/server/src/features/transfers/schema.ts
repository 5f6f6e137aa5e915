import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { Instant, Metadata, PageQuery, periodFilters, text } from '../../platform/wire.ts'
import { approvalOf } from '../approvals/index.ts'
import { ChainName } from '../chains/index.ts'
import { EvmAddress } from '../wallets/index.ts'

const TokenSymbol = z.string().min(1).max(32).meta({ example: 'USDC' })
const Amount = z.string().min(1).max(100).meta({ description: 'Decimal amount in whole tokens.', example: '12.5' })

/** Request for a transfer. `fromWalletType` may be omitted: the id's prefix implies it. */
export const NewTransfer = z.strictObject({
  fromWalletId: z.union([id('mwt'), id('cad')]),
  fromWalletType: z.enum(['master', 'child']).optional(),
  fromChain: ChainName.optional().meta({ description: "The wallet's own chain if omitted." }),
  fromToken: TokenSymbol,
  toAddress: EvmAddress,
  toChain: ChainName,
  toToken: TokenSymbol,
  amount: Amount,
  minToAmount: Amount.optional().meta({
    description:
      'Least amount that must arrive, in whole tokens of toToken; less is `price-too-low`. If omitted: 98 % of a dollar for a dollar. A swap between a coin and a token needs it or quoteId.',
    example: '12.4',
  }),
  quoteId: id('qte').optional().meta({
    description:
      'A quote for this transfer, valid for 60 seconds and for one transfer: at least its minToAmount arrives.',
  }),
  reference: text(80, 1)
    .optional()
    .meta({ description: 'Your own reference; it is returned and used for nothing else.' }),
  metadata: Metadata.optional(),
})
export type NewTransfer = z.output<typeof NewTransfer>

export const NewTransferQuote = NewTransfer.omit({ quoteId: true, reference: true, metadata: true })
export type NewTransferQuote = z.output<typeof NewTransferQuote>

export const RouteName = z.enum(['direct', 'partner-swap', 'partner-bridge'])

const moved = {
  fromChain: ChainName,
  toChain: ChainName,
  fromToken: z.string(),
  toToken: z.string(),
  amount: z.string(),
  toAmount: z.string().meta({ description: 'Expected amount, then the received amount, in whole tokens of toToken.' }),
  minToAmount: z.string().meta({ description: 'Least amount that arrives, in whole tokens of toToken.' }),
  feeAmount: z.string().meta({ description: 'Network fee, in feeToken: the expected maximum, then the actual fee.' }),
  feeToken: z.string(),
  route: RouteName,
  routeReason: z.string().meta({ description: 'Explanation of the chosen route.' }),
}

const TransferStatus = z.enum(['pending', 'confirmed', 'failed'])

export const Transfer = z.strictObject({
  id: id('wtx'),
  fromWalletId: z.union([id('mwt'), id('cad')]),
  toAddress: z.string(),
  txHash: z.string().nullable().meta({ description: 'Null until the transaction is signed.' }),
  ...moved,
  status: TransferStatus,
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  receivedToken: z.string().nullable().meta({
    description: 'The token that a partner delivered if it is not toToken: its symbol, or its address.',
  }),
  destinationTxHash: z.string().nullable().meta({ description: 'Where a bridge delivered, if its partner says.' }),
  refundTxHash: z.string().nullable(),
  refundedAt: Instant.nullable().meta({
    description: 'When a partner refunded the money; this may be after the transfer has failed.',
  }),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  approval: approvalOf,
  createdAt: Instant,
  confirmedAt: Instant.nullable(),
})
export type Transfer = z.input<typeof Transfer>

export const TransferQuote = z.strictObject({
  quoteId: id('qte').meta({ description: 'For a transfer that must execute as quoted.' }),
  expiresAt: Instant.meta({ description: 'Expiry of the quote.' }),
  ...moved,
  deniedBy: z
    .string()
    .nullable()
    .meta({ description: "The rule of the wallet's spend policy that would refuse it now; null if none would." }),
})
export type TransferQuote = z.input<typeof TransferQuote>

export const TransferParams = z.strictObject({ id: id('wtx') })

export const TransferListQuery = PageQuery.extend({
  ...periodFilters,
  fromWalletId: z.union([id('mwt'), id('cad')]).optional(),
  status: TransferStatus.optional(),
})

named({ NewTransfer, NewTransferQuote, Transfer, TransferQuote })
