import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { InstantInput, text } from '../../../platform/wire.ts'
import { EventTypeName } from '../schema.ts'

/** Event types separated by commas; each must exist, since a mistyped one would never match. */
const Types = text(2_048, 1)
  .transform((list) => list.split(','))
  .pipe(z.array(EventTypeName))

export const ListenQuery = z.strictObject({
  events: Types.optional().meta({ description: 'Types with commas between them; all when left out.' }),
  from: InstantInput.optional().meta({
    description: 'Starts after this time (ISO 8601), as far back as events are stored. Default: now.',
  }),
  follow: z
    .enum(['true', 'false'])
    .optional()
    .meta({ description: 'With `false`, the stream ends after the existing events; 204 if there are none.' }),
})
export type ListenQuery = z.output<typeof ListenQuery>

/** The secret that signs what the listeners of the calling key receive; it never changes. */
export const ListenerSecret = z.strictObject({
  secret: z.string().meta({ description: 'The secret that signs the deliveries; it begins with `whsec_`.' }),
})
export type ListenerSecret = z.input<typeof ListenerSecret>

export const TriggerRequest = z.strictObject({ type: EventTypeName.describe('The type of the sample event.') })
export type TriggerRequest = z.output<typeof TriggerRequest>

const EventMember = z.strictObject({
  name: z.string().meta({ description: 'The name of the member in the payload.' }),
  type: z
    .enum(['string', 'time', 'integer'])
    .meta({ description: 'Its JSON type; `time` is an ISO 8601 string in UTC.' }),
  nullable: z.boolean().meta({ description: 'Whether the value can be null.' }),
  description: z.string().meta({ description: 'What the value is.' }),
})

/** Every event type with its members and a sample payload, as `events.trigger` creates it. */
export const EventSamples = z.strictObject({
  types: z
    .array(
      z.strictObject({
        type: z.string().meta({ description: 'The event type, such as `payment.settled`.' }),
        description: z.string().meta({ description: 'When the event is published.' }),
        members: z.array(EventMember).meta({ description: 'The members of the payload.' }),
        payload: z
          .record(z.string(), z.unknown())
          .meta({ description: 'A sample payload with invented ids and amounts.' }),
      }),
    )
    .describe('Every event type.'),
})
export type EventSamples = z.input<typeof EventSamples>

export const ResendRequest = z.strictObject({
  webhookId: id('wh').optional().meta({ description: 'Sends to this webhook alone, whatever it subscribes to.' }),
})
export type ResendRequest = z.output<typeof ResendRequest>

/** The number of webhooks to which the event is sent again. */
export const Resend = z.strictObject({
  eventId: id('evt'),
  deliveries: z.int().describe('Number of webhooks that receive the event again.'),
})
export type Resend = z.input<typeof Resend>

named({ ListenerSecret, TriggerRequest, EventSamples, ResendRequest, Resend })
