import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { Instant, Metadata, PageQuery, text } from '../../platform/wire.ts'
import { ChainName } from '../chains/index.ts'
import { EvmAddress } from '../wallets/index.ts'

const TokenSymbol = z.string().min(1).max(32).meta({ example: 'USDC' })
const Amount = z.string().min(1).max(100).meta({ description: 'Decimal amount in whole tokens.', example: '12.5' })

/** What moves where. `fromWalletType` may be left out: the id's prefix says it. */
export const NewTransfer = z.strictObject({
  fromWalletId: z.union([id('mwt'), id('cad')]),
  fromWalletType: z.enum(['master', 'child']).optional(),
  fromChain: ChainName.optional().meta({ description: "The wallet's own chain when left out." }),
  fromToken: TokenSymbol,
  toAddress: EvmAddress,
  toChain: ChainName,
  toToken: TokenSymbol,
  amount: Amount,
  minToAmount: Amount.optional().meta({
    description:
      'Least that must arrive, in whole tokens of toToken; less is `price-too-low`. Left out: 98 % of a dollar for a dollar. A swap between a coin and a token needs it or quoteId.',
    example: '12.4',
  }),
  quoteId: id('qte').optional().meta({
    description: 'A quote of this transfer, for 60 seconds and once: at least its minToAmount arrives.',
  }),
  reference: text(80, 1)
    .optional()
    .meta({ description: 'Your own name for it; it is answered and goes nowhere else.' }),
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
  toAmount: z
    .string()
    .meta({ description: 'What is expected to arrive, then what arrived, in whole tokens of toToken.' }),
  minToAmount: z.string().meta({ description: 'What arrives at least, in whole tokens of toToken.' }),
  feeAmount: z.string().meta({ description: 'What the chain took, or is expected to take at most, in feeToken.' }),
  feeToken: z.string(),
  route: RouteName,
  routeReason: z.string().meta({ description: 'Why this route, in words.' }),
}

export const Transfer = z.strictObject({
  id: id('wtx'),
  fromWalletId: z.union([id('mwt'), id('cad')]),
  toAddress: z.string(),
  txHash: z.string().nullable().meta({ description: 'Null until the transaction is signed.' }),
  ...moved,
  status: z.enum(['pending', 'confirmed', 'failed']),
  reason: z.string().nullable().meta({ description: 'Why it failed.' }),
  receivedToken: z.string().nullable().meta({
    description: 'What a partner delivered where it is another token than toToken: its symbol, or its address.',
  }),
  destinationTxHash: z.string().nullable().meta({ description: 'Where a bridge delivered, if its partner says.' }),
  refundTxHash: z.string().nullable(),
  refundedAt: Instant.nullable().meta({
    description: 'When a partner gave the money back; it may come after the transfer has failed.',
  }),
  reference: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  createdAt: Instant,
  confirmedAt: Instant.nullable(),
})
export type Transfer = z.input<typeof Transfer>

export const TransferQuote = z.strictObject({
  quoteId: id('qte').meta({ description: 'For a transfer that is to go as quoted.' }),
  expiresAt: Instant.meta({ description: 'The quote may be used until then.' }),
  ...moved,
  deniedBy: z
    .string()
    .nullable()
    .meta({ description: "The rule of the wallet's spend policy that would refuse it now; null for none." }),
})
export type TransferQuote = z.input<typeof TransferQuote>

export const TransferParams = z.strictObject({ id: id('wtx') })

export const TransferListQuery = PageQuery.extend({ fromWalletId: z.union([id('mwt'), id('cad')]).optional() })
