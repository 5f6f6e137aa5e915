import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { CreatedAt, Instant } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { MinAmount, TokenSymbol } from '../managed/store.ts'

/** Most children whose tokens one sweep moves. */
export const sweepChildrenMax = 1_000

export const SweepRequest = z.strictObject({
  token: TokenSymbol.describe('Symbol of the token that is swept.'),
  childAddressIds: z
    .array(id('cad'))
    .min(1)
    .max(sweepChildrenMax)
    .refine((ids) => new Set(ids).size === ids.length, 'must name each address once')
    .optional()
    .meta({ description: 'If omitted: all children of the wallet.' }),
  minAmount: MinAmount.optional(),
})
export type SweepRequest = z.output<typeof SweepRequest>

const summaryFields = {
  id: id('swp'),
  masterWalletId: id('mwt'),
  chain: ChainName,
  token: z.string().describe('Symbol of the token.'),
  trigger: z
    .enum(['request', 'automatic'])
    .describe('Whether a request or the automatic sweep of the wallet began it.'),
  status: z
    .enum(['sweeping', 'completed'])
    .meta({ description: '`completed` once every child is swept or failed; see the record of each child.' }),
  isPartial: z
    .boolean()
    .meta({ description: 'Whether children remain for another sweep, since one sweep has a maximum number.' }),
  childCount: z.int().describe('Number of children in this sweep.'),
  amount: z.string().meta({ description: 'Total balance of the children of this sweep, as a decimal amount.' }),
  sweptAmount: z.string().meta({ description: 'The amount that arrived.' }),
  createdAt: CreatedAt,
  completedAt: Instant.nullable().describe('When every child was swept or had failed; null until then.'),
}

export const SweepSummary = z.strictObject(summaryFields)
export type SweepSummary = z.input<typeof SweepSummary>

export const SweepChild = z.strictObject({
  childAddressId: id('cad'),
  address: z.string().describe('Address of the child, with EIP-55 checksum.'),
  amount: z.string().describe('Amount that is moved, in whole tokens.'),
  status: z
    .enum(['pending', 'sent', 'swept', 'failed'])
    .describe('`sent`: its transaction is under way. `swept`: the money has arrived.'),
  txHash: z.string().nullable().meta({ description: 'The transaction that moves it, or moved it.' }),
  reason: z.string().nullable().meta({
    description:
      'Why it failed. The money is still at the child, except with `not-received`; with `transfer-failed` it can still move until the authorization expires.',
  }),
})
export type SweepChild = z.input<typeof SweepChild>

export const Sweep = z.strictObject({
  ...summaryFields,
  children: z.array(SweepChild).describe('What happens to each child.'),
})
export type Sweep = z.input<typeof Sweep>

export const SweepParams = z.strictObject({ id: id('mwt'), sweepId: id('swp') })

named({ SweepRequest, SweepSummary, SweepChild, Sweep })
