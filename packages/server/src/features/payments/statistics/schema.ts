import { z } from 'zod'
import { named } from '../../../platform/named.ts'
import { Instant, InstantInput } from '../../../platform/wire.ts'
import { paymentStatuses } from '../schema.ts'

/** Seconds of one interval. */
export const intervalSeconds = { minute: 60, hour: 3_600, day: 86_400 } as const

export const StatisticsQuery = z.strictObject({
  from: InstantInput.describe('Begin of the period (ISO 8601).'),
  to: InstantInput.describe('End of the period (ISO 8601), exclusive.'),
  interval: z.enum(['minute', 'hour', 'day']).meta({
    description:
      'Length of one interval; at most 200 fit between `from` and `to`. For hours and days, `from` is the quarter of an hour in which it lies, and `to` the end of its own.',
  }),
})
export type StatisticsQuery = z.output<typeof StatisticsQuery>

const Milliseconds = z.int().meta({ description: 'From verification to settlement, to two digits.' })

export const Statistics = z.strictObject({
  from: Instant.describe('Begin of the period.'),
  to: Instant.describe('End of the period, exclusive.'),
  interval: z.enum(['minute', 'hour', 'day']).describe('Length of one interval.'),
  countedFrom: Instant.meta({
    description:
      '`from`, or by the minute a later time where more than 200,000 payments follow: older ones are not counted.',
  }),
  intervals: z
    .array(
      z.strictObject({
        at: Instant.meta({ description: 'When the interval begins. Intervals without payments are left out.' }),
        protocol: z.enum(['x402', 'mpp']).describe('The protocol of the payments.'),
        token: z.string().describe('Symbol of the token.'),
        status: z.enum(paymentStatuses).describe('The present status of the payments.'),
        payments: z.int().describe('Number of payments.'),
        amount: z.string().meta({ description: 'Decimal amount in whole tokens.', example: '12.5' }),
      }),
    )
    .describe('Payments by interval, protocol, token and status.'),
  settlement: z
    .strictObject({
      payments: z.int().meta({ description: 'Payments that settled on a chain; stubs are not among them.' }),
      p50Ms: Milliseconds.nullable(),
      p95Ms: Milliseconds.nullable(),
      intervals: z
        .array(
          z.strictObject({
            at: Instant.describe('When the interval begins.'),
            payments: z.int().describe('Number of payments that settled on a chain.'),
            p50Ms: Milliseconds,
            p95Ms: Milliseconds,
          }),
        )
        .describe('The same for each interval.'),
    })
    .describe('How long settlements took.'),
  failures: z
    .array(
      z.strictObject({
        reason: z.string().nullable().describe('Code of the failure; null where none is known.'),
        payments: z.int().describe('Number of payments.'),
      }),
    )
    .meta({ description: 'Reasons of failed settlements, the most frequent first.' }),
})
export type Statistics = z.input<typeof Statistics>

named({ PaymentStatistics: Statistics })
