import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { Instant } from '../../../platform/wire.ts'
import { ChainName } from '../../chains/index.ts'
import { MinAmount, TokenSymbol } from '../managed/auto-sweep.ts'

/** Children that one sweep moves the tokens of at most. */
export const sweepChildrenMax = 1_000

export const SweepRequest = z.strictObject({
  token: TokenSymbol,
  childAddressIds: z
    .array(id('cad'))
    .min(1)
    .max(sweepChildrenMax)
    .refine((ids) => new Set(ids).size === ids.length, 'must name each address once')
    .optional()
    .meta({ description: 'Left out: all children of the wallet.' }),
  minAmount: MinAmount.optional(),
})
export type SweepRequest = z.output<typeof SweepRequest>

const summaryFields = {
  id: id('swp'),
  masterWalletId: id('mwt'),
  chain: ChainName,
  token: z.string(),
  trigger: z.enum(['request', 'automatic']),
  status: z
    .enum(['sweeping', 'completed'])
    .meta({ description: 'completed once every child is swept or failed; which of the two, its own record says.' }),
  isPartial: z
    .boolean()
    .meta({ description: 'Whether children were left for another sweep, since one takes so many at most.' }),
  childCount: z.int(),
  amount: z.string().meta({ description: 'What the children of this sweep held together, as a decimal amount.' }),
  sweptAmount: z.string().meta({ description: 'What arrived of it.' }),
  createdAt: Instant,
  completedAt: Instant.nullable(),
}

export const SweepSummary = z.strictObject(summaryFields)
export type SweepSummary = z.input<typeof SweepSummary>

export const SweepChild = z.strictObject({
  childAddressId: id('cad'),
  address: z.string(),
  amount: z.string(),
  status: z.enum(['pending', 'sent', 'swept', 'failed']),
  txHash: z.string().nullable().meta({ description: 'The transaction that moves it, or moved it.' }),
  reason: z.string().nullable().meta({ description: 'Why it failed; the money is still where it was.' }),
})
export type SweepChild = z.input<typeof SweepChild>

export const Sweep = z.strictObject({ ...summaryFields, children: z.array(SweepChild) })
export type Sweep = z.input<typeof Sweep>

export const SweepParams = z.strictObject({ id: id('mwt'), sweepId: id('swp') })
