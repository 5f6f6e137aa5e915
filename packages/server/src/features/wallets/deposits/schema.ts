import { chains } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Instant, PageQuery, periodFilters } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { AmlStatus } from '../schema.ts'
import { transactionKinds } from './booking.ts'
import { transactionStatuses } from './transaction-store.ts'

/** One wallet's side of a transfer that the watcher found. */
export const WalletTransaction = z.strictObject({
  id: id('wtx'),
  walletId: z.string().describe('The wallet or child address.'),
  direction: z.enum(['in', 'out']).describe('`in` for what it received, `out` for what it sent.'),
  kind: z.enum(transactionKinds).meta({
    description:
      '`transfer`: ordinary. `internal`: between your own managed wallets. deposit.success reports both, without sweeps. `unsupported`: on another chain or in another token than the wallet’s. `fee`: a fee on Tempo. `forward`: from a virtual address to its master. `held`: kept back by the receive policy of the recipient.',
  }),
  status: z.enum(transactionStatuses).meta({
    description:
      '`withdrawn`: a reorganization removed its block; it returns with the same id if the transaction does.',
  }),
  chain: ChainName,
  tokenSymbol: z.string().describe('Symbol of the token.'),
  amount: z.string().meta({ description: 'Decimal, in whole tokens.' }),
  rawAmount: z.string().meta({ description: 'In the token’s smallest unit.' }),
  from: z.string().describe('Address of the sender.'),
  to: z.string().describe('Address of the recipient.'),
  txHash: z.string().describe('Hash of the transaction.'),
  logIndex: z.int().describe('Index of the transfer log in the block.'),
  blockNumber: z.int().describe('Number of the block.'),
  amlStatus: AmlStatus.nullable().meta({
    description: 'Screening status of the sender; null for outgoing transactions.',
  }),
  frozenAmount: z.string().meta({ description: 'How much of the amount screening froze.' }),
  createdAt: CreatedAt,
  confirmedAt: Instant.nullable().describe('When it had the confirmations that its chain requires; null until then.'),
})
export type WalletTransaction = z.input<typeof WalletTransaction>

export const TransactionQuery = PageQuery.extend({
  ...periodFilters,
  status: z.enum(transactionStatuses).optional().describe('Only in this state.'),
  direction: z.enum(['in', 'out']).optional().describe('Incoming or outgoing only.'),
  chain: z.enum(chains).optional().describe('Only on this chain.'),
  token: z.string().min(1).max(32).optional().describe('Only this token, by symbol.'),
  onHold: z.literal('true').optional().describe('Only deposits on hold, wholly or in part.'),
})
export type TransactionQuery = z.output<typeof TransactionQuery>

/** The hash of a transaction, in lower case. */
const TransactionHash = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hexadecimal digits')
  .transform((text): `0x${string}` => `0x${text.slice(2).toLowerCase()}`)
  .meta({ example: `0x${'ab'.repeat(32)}` })

export const RescanRequest = z.strictObject({
  chain: ChainName,
  txHash: TransactionHash.describe('Hash of the transaction.'),
})
export type RescanRequest = z.output<typeof RescanRequest>

export const RescanResult = z.strictObject({
  transactions: z.array(WalletTransaction).describe('Transactions of your wallets that were found in it.'),
})
export type RescanResult = z.input<typeof RescanResult>

named({ WalletTransaction, RescanRequest, RescanResult })
