import { chains } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { Instant, PageQuery, periodFilters } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { AmlStatus } from '../schema.ts'
import { transactionKinds } from './booking.ts'
import { transactionStatuses } from './transaction-store.ts'

/** One wallet's side of a transfer that the watcher found. */
export const WalletTransaction = z.strictObject({
  id: id('wtx'),
  walletId: z.string(),
  direction: z.enum(['in', 'out']),
  kind: z.enum(transactionKinds).meta({
    description:
      'transfer: ordinary; only incoming ones of this kind are reported by deposit.success. internal: between your own managed wallets. unsupported: on a chain or in a token that the wallet was not created for. fee: a fee on Tempo. forward: from a virtual address to its master. held: kept back by the recipient’s receive policy.',
  }),
  status: z.enum(transactionStatuses).meta({
    description: 'withdrawn: a reorganization removed its block; it returns with the same id if the transaction does.',
  }),
  chain: ChainName,
  tokenSymbol: z.string(),
  amount: z.string().meta({ description: 'Decimal, in whole tokens.' }),
  rawAmount: z.string().meta({ description: 'In the token’s smallest unit.' }),
  from: z.string(),
  to: z.string(),
  txHash: z.string(),
  logIndex: z.int(),
  blockNumber: z.int(),
  amlStatus: AmlStatus.nullable().meta({
    description: 'Screening status of the sender; null for outgoing transactions.',
  }),
  frozenAmount: z.string().meta({ description: 'How much of the amount screening froze.' }),
  createdAt: Instant,
  confirmedAt: Instant.nullable(),
})
export type WalletTransaction = z.input<typeof WalletTransaction>

export const TransactionQuery = PageQuery.extend({
  ...periodFilters,
  status: z.enum(transactionStatuses).optional(),
  direction: z.enum(['in', 'out']).optional(),
  chain: z.enum(chains).optional(),
  token: z.string().min(1).max(32).optional(),
})
export type TransactionQuery = z.output<typeof TransactionQuery>

/** The hash of a transaction, in lower case. */
const TransactionHash = z
  .string()
  .regex(/^0x[0-9a-fA-F]{64}$/, 'must be 0x and 64 hexadecimal digits')
  .transform((text): `0x${string}` => `0x${text.slice(2).toLowerCase()}`)
  .meta({ example: `0x${'ab'.repeat(32)}` })

export const RescanRequest = z.strictObject({ chain: ChainName, txHash: TransactionHash })
export type RescanRequest = z.output<typeof RescanRequest>

export const RescanResult = z.strictObject({ transactions: z.array(WalletTransaction) })
export type RescanResult = z.input<typeof RescanResult>

named({ WalletTransaction, RescanRequest, RescanResult })
