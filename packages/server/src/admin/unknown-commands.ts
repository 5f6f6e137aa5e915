import { formatAmount } from '@purser/protocol'
import { z } from 'zod'
import { endUnknown, listUnknown } from '../features/transfers/index.ts'
import { id } from '../platform/ids.ts'
import { type Command, command } from './command.ts'

const Hash = z.templateLiteral(['0x', z.string().regex(/^[0-9a-f]{64}$/)], {
  error: 'must be 0x and 64 lower-case digits',
})

const list = command({
  name: 'unknown-transfers',
  summary: 'Show transfers whose nonce another transaction used and whose money was not found, oldest first.',
  options: { limit: 'how many (default 50, at most 1000)' },
  schema: z.strictObject({ limit: z.coerce.number().int().min(1).max(1_000).default(50) }),
  async run(operator, { limit }) {
    const found = await listUnknown(operator.db, limit)
    const records = found.map(({ transfer, unknownAt, sender, nonce }) => ({
      transferId: transfer.id,
      organisationId: transfer.organisationId,
      environment: transfer.environment,
      unknownAt: unknownAt.toISOString(),
      network: transfer.fromNetwork,
      sender,
      nonce: Number(nonce),
      to: transfer.toAddress,
      amount: formatAmount(transfer.rawAmount, transfer.decimals),
      token: transfer.fromToken,
    }))
    const lines = records.map((one) => Object.values(one).join('  '))
    return { text: lines.join('\n') || 'no transfer is unknown', json: records, exitCode: 0 }
  },
})

const end = command({
  name: 'end-transfer',
  summary:
    'End an unknown transfer with your finding on chain: the transaction that moved its money, or that nothing moved.',
  options: {
    transfer: 'id of the transfer (wtx_…)',
    'moved-by': 'hash of the transaction that moved its money',
    'not-moved': '"yes": nothing moved and nothing can; reserved money is released, and the caller may retry',
  },
  schema: z
    .strictObject({ transfer: id('wtx'), 'moved-by': Hash.optional(), 'not-moved': z.literal('yes').optional() })
    .refine((given) => (given['moved-by'] === undefined) !== (given['not-moved'] === undefined), {
      path: ['moved-by'],
      message: 'give --moved-by or --not-moved yes',
    }),
  async run(operator, { transfer, 'moved-by': movedBy }) {
    const isEnded = await endUnknown(operator, transfer, movedBy === undefined ? 'not-moved' : { movedBy })
    const says = isEnded ? 'ended' : 'is not unknown'
    return { text: `${transfer}  ${says}`, json: { transferId: transfer, isEnded }, exitCode: isEnded ? 0 : 1 }
  },
})

export const unknownCommands: readonly Command[] = [list, end]
