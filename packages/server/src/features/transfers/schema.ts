import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import {
  CreatedAt,
  EvmAddress,
  FilteredMetadata,
  Instant,
  metadataFilter,
  PageQuery,
  periodFilters,
  StoredMetadata,
  text,
} from '../../platform/wire.ts'
import { approvalOf } from '../approvals/index.ts'
import { ChainName } from '../chains/index.ts'

const TokenSymbol = z.string().min(1).max(32).meta({ example: 'USDC' })
const Amount = z.string().min(1).max(100).meta({ description: 'Decimal amount in whole tokens.', example: '12.5' })

/** Request for a transfer. `fromWalletType` may be omitted: the id's prefix implies it. */
export const NewTransfer = z.strictObject({
  fromWalletId: z.union([id('mwt'), id('cad')]).describe('The master wallet or child address that pays.'),
  fromWalletType: z.enum(['master', 'child']).optional().describe('Kind of the wallet.'),
  fromChain: ChainName.optional().meta({ description: "The wallet's own chain if omitted." }),
  fromToken: TokenSymbol.describe('Symbol of the token that is sent.'),
  toAddress: EvmAddress.describe('Address of the recipient.'),
  toChain: ChainName.describe('The chain on which it arrives.'),
  toToken: TokenSymbol.describe('Symbol of the token that arrives.'),
  amount: Amount,
  minToAmount: Amount.optional().meta({
    description:
      'Least amount that must arrive, in whole tokens of toToken; less is `price-too-low`. Default: 98 % of a dollar for a dollar. A swap between coin and token needs it or quoteId.',
    example: '12.4',
  }),
  quoteId: id('qte').optional().meta({
    description:
      'A quote for this transfer, valid for 60 seconds and for one transfer: at least its minToAmount arrives.',
  }),
  reference: text(80, 1)
    .optional()
    .meta({ description: 'Your own reference; it is returned and used for nothing else.' }),
  metadata: FilteredMetadata.optional(),
})
export type NewTransfer = z.output<typeof NewTransfer>

export const NewTransferQuote = NewTransfer.omit({ quoteId: true, reference: true, metadata: true })
export type NewTransferQuote = z.output<typeof NewTransferQuote>

export const RouteName = z.enum(['direct', 'partner-swap', 'partner-bridge'])

const moved = {
  fromChain: ChainName.describe('The chain that the money leaves.'),
  toChain: ChainName.describe('The chain on which it arrives.'),
  fromToken: z.string().describe('Symbol of the token that is sent.'),
  toToken: z.string().describe('Symbol of the token that arrives.'),
  amount: z.string().describe('Amount that is sent, in whole tokens of fromToken.'),
  toAmount: z.string().meta({ description: 'Expected amount, then the received amount, in whole tokens of toToken.' }),
  minToAmount: z.string().meta({ description: 'Least amount that arrives, in whole tokens of toToken.' }),
  feeAmount: z.string().meta({ description: 'Network fee, in feeToken: the expected maximum, then the actual fee.' }),
  feeToken: z.string().describe('Symbol of the token or coin in which the fee is paid.'),
  route: RouteName.describe(
    '`direct` on one chain in one token, `partner-swap` to another token, `partner-bridge` to another chain.',
  ),
  routeReason: z.string().meta({ description: 'Explanation of the chosen route.' }),
}

const TransferStatus = z.enum(['pending', 'confirmed', 'failed'])

export const Transfer = z.strictObject({
  id: id('wtx'),
  fromWalletId: z.union([id('mwt'), id('cad')]).describe('The wallet that pays.'),
  toAddress: z.string().describe('Address of the recipient.'),
  txHash: z.string().nullable().meta({ description: 'Null until the transaction is signed.' }),
  ...moved,
  status: TransferStatus.describe(
    '`confirmed`: it has arrived. `failed`: the money is in the wallet, except with the reason `not-received`.',
  ),
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  receivedToken: z.string().nullable().meta({
    description: 'The token that a partner delivered if it is not toToken: its symbol, or its address.',
  }),
  destinationTxHash: z.string().nullable().meta({
    description: 'Hash of the transaction that delivered on the destination chain, if the partner reports it.',
  }),
  refundTxHash: z.string().nullable().describe('The transaction of the refund; null without one.'),
  refundedAt: Instant.nullable().meta({
    description: 'When a partner refunded the money; this may be after the transfer has failed.',
  }),
  reference: z.string().nullable().describe('Your own reference; null if none was given.'),
  resource: z
    .string()
    .nullable()
    .describe('What a payment of a 402 is for: its URL without the query; null if not known.'),
  metadata: StoredMetadata,
  approval: approvalOf,
  createdAt: CreatedAt,
  confirmedAt: Instant.nullable().describe('When it was confirmed; null until then.'),
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
  fromWalletId: z
    .union([id('mwt'), id('cad')])
    .optional()
    .describe('Only transfers from this wallet.'),
  status: TransferStatus.optional().describe('Only transfers in this state.'),
  ...metadataFilter,
})

named({ NewTransfer, NewTransferQuote, Transfer, TransferQuote })
