import {
  type EventPayloads,
  type EventSample,
  type EventType,
  eventCatalogue,
  eventTypes,
  newTypeId,
} from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import type { Deps } from '../../../platform/ctx.ts'
import type { EventSamples } from './schema.ts'

type Source = Pick<Deps, 'clock' | 'random'>

/** A sample payload. Ids, hashes and addresses are new each time, so that receivers that deduplicate by id accept each one. */
export function samplePayload<T extends EventType>(type: T, deps: Source): EventPayloads[T]
export function samplePayload(type: EventType, deps: Source): Readonly<Record<string, unknown>> {
  const fields = Object.entries(eventCatalogue[type].fields)
  return Object.fromEntries(fields.map(([name, { sample }]) => [name, sampleValue(sample, deps)]))
}

/** Each type with the members of its payload and one sample. */
export function eventSamples(deps: Source): EventSamples {
  return {
    types: eventTypes.map((type) => {
      const { description, fields } = eventCatalogue[type]
      const members = Object.entries(fields).map(([name, field]) => ({
        name,
        type: field.isTime ? ('time' as const) : field.type,
        nullable: field.isNullable,
        description: field.description,
      }))
      return { type, description, members, payload: samplePayload(type, deps) }
    }),
  }
}

function sampleValue(sample: EventSample, deps: Source): string | number | null {
  if ('value' in sample) return sample.value
  if ('id' in sample) return newTypeId(sample.id, deps.clock.now().getTime(), deps.random.bytes(10))
  if ('secondsFromNow' in sample)
    return instantOf(deps.clock.now().getTime() + sample.secondsFromNow * 1_000).toISOString()
  const bytes = sample.random === 'hash' ? 32 : 20
  return `0x${Buffer.from(deps.random.bytes(bytes)).toString('hex')}`
}
