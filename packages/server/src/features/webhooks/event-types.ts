import { type EventField, type EventType, eventCatalogue, eventTypes } from '@purser/protocol'
import { z } from 'zod'

/** The schema of each event type's payload, as openapi.json publishes it. */
export const eventPayloads: Readonly<Record<string, z.ZodObject>> = Object.fromEntries(
  eventTypes.map((type) => [type, payloadSchema(type)]),
)

/** Subscribes to every event type, including those that are added later. */
export const allEvents = '*'

function payloadSchema(type: EventType): z.ZodObject {
  const { description, fields } = eventCatalogue[type]
  const members = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)])
  return z.object(Object.fromEntries(members)).meta({ description })
}

function fieldSchema(field: EventField<string> | EventField<string | null> | EventField<number>): z.ZodType {
  const text = field.isTime ? z.iso.datetime() : z.string()
  const schema = field.type === 'integer' ? z.int() : text
  return (field.isNullable ? schema.nullable() : schema).meta({ description: field.description })
}
