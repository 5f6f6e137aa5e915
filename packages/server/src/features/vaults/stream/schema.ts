import { z } from 'zod'
import { InstantInput, text } from '../../../platform/wire.ts'

export const StreamQuery = z.strictObject({
  from: InstantInput.optional().meta({
    description: 'Begins with the events after that time (ISO 8601), without those of that very millisecond.',
  }),
  lastEventId: text(64).optional().meta({
    description: 'As the Last-Event-ID header, for a page that opens a new stream; the header goes before it.',
  }),
  ticket: text(256).optional().meta({
    description: 'In place of a header, for browsers: from `POST /vaults/{id}/tokens` with `kind: "ticket"`.',
  }),
})
export type StreamQuery = z.output<typeof StreamQuery>
