import { formatAmount } from '@purser/protocol'
import { z } from 'zod'
import { type Ended, endUnknown, type Finding, listUnknown } from '../features/transfers/index.ts'
import { id } from '../platform/ids.ts'
import { type Command, command, linesOr } from './command.ts'

const Hash = z.templateLiteral(['0x', z.string().regex(/^[0-9a-f]{64}$/)], {
  error: 'must be 0x and 64 lower-case digits',
})

const list = command({
  name: 'unknown-transfers',
  summary:
    'Show transfers that only you can decide, oldest first: whether their money moved (nonce), or where it is since it left (delivery, refund).',
  options: { limit: 'how many (default 50, at most 1000)' },
  schema: z.strictObject({ limit: z.coerce.number().int().min(1).max(1_000).default(50) }),
  async run(operator, { limit }) {
    const found = await listUnknown(operator.db, limit)
    const records = found.map(({ transfer, unknownAt, doubt, partnerStatus, sender, nonce }) => ({
      transferId: transfer.id,
      organisationId: transfer.organisationId,
      environment: transfer.environment,
      unknownAt: unknownAt.toISOString(),
      doubt,
      network: transfer.fromNetwork,
      sender,
      nonce: Number(nonce),
      txHash: transfer.txHash,
      partner: transfer.partner,
      partnerStatus,
      toNetwork: transfer.toNetwork,
      to: transfer.toAddress,
      amount: formatAmount(transfer.rawAmount, transfer.decimals),
      token: transfer.fromToken,
    }))
    const lines = records.map((one) => Object.values(one).map(String).join('  '))
    return { lines: linesOr(lines, 'no transfer is unknown'), json: records, exitCode: 0 }
  },
})

const findings = ['moved-by', 'not-moved', 'delivered-by', 'refunded-by', 'not-received'] as const

const Given = z
  .strictObject({
    ...{
      transfer: id('wtx'),
      'moved-by': Hash.optional(),
      'delivered-by': Hash.optional(),
      'refunded-by': Hash.optional(),
    },
    ...{ 'not-moved': z.literal('yes').optional(), 'not-received': z.literal('yes').optional() },
  })
  .refine((given) => findings.filter((name) => given[name] !== undefined).length === 1, {
    path: ['moved-by'],
    message: `give one of ${findings.map((name) => `--${name}`).join(', ')}`,
  })

const sentences: Readonly<Record<Ended, string>> = {
  ended: 'ended',
  'not-unknown': 'is not unknown',
  other: 'is unknown for another reason: see its doubt in unknown-transfers',
}

const end = command({
  name: 'end-transfer',
  summary:
    'End an unknown transfer with your finding on chain: the first two are for the doubt "nonce", the others for money that left.',
  options: {
    transfer: 'id of the transfer (wtx_…)',
    'moved-by': 'hash of the transaction that moved its money',
    'not-moved': '"yes": nothing moved and nothing can; reserved money is released, and the caller may retry',
    'delivered-by': 'hash of the transaction that brought the money to the recipient',
    'refunded-by': 'hash of the transaction that brought the money back to the wallet',
    'not-received':
      '"yes": the money is lost; the transfer has failed, and its amount stays counted to the spend policy',
  },
  schema: Given,
  async run(operator, { transfer, ...given }) {
    const result = await endUnknown(operator, transfer, findingOf(given))
    const isEnded = result === 'ended'
    return {
      lines: [`${transfer}  ${sentences[result]}`],
      json: { transferId: transfer, isEnded },
      exitCode: isEnded ? 0 : 1,
    }
  },
})

function findingOf(given: Omit<z.output<typeof Given>, 'transfer'>): Finding {
  const { 'moved-by': movedBy, 'delivered-by': deliveredBy, 'refunded-by': refundedBy } = given
  if (movedBy !== undefined) return { movedBy }
  if (deliveredBy !== undefined) return { deliveredBy }
  if (refundedBy !== undefined) return { refundedBy }
  return given['not-moved'] === undefined ? 'not-received' : 'not-moved'
}

export const unknownCommands: readonly Command[] = [list, end]
