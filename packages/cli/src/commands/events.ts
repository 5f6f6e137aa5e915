import type { EventQuery, RecordedEvent } from '@purser/sdk'
import { type Command, CommandError } from '../command.ts'
import { eventTypeIn } from '../event-type.ts'
import { serviceOf, serviceOptions } from '../service.ts'

const limitDefault = 20
const limitMax = 10_000

/** `purser events list`: lists events, newest first. */
export const eventsList: Command = {
  name: 'events list',
  summary: 'List the events of the last 30 days, newest first.',
  positionals: [],
  options: {
    type: { value: '<event>', about: 'only events of this type' },
    limit: { value: '<number>', about: `maximum number of events (default ${limitDefault}, at most ${limitMax})` },
    ...serviceOptions,
  },
  notes: [],
  async run(args, io) {
    const limit = limitIn(args.options.limit)
    const type = args.options.type === undefined ? undefined : eventTypeIn(args.options.type)
    const { purser } = await serviceOf(args, io)
    const query: EventQuery = { ...(type !== undefined && { type }), limit: Math.min(limit, 500) }
    const events = await purser.events.list(query).toArray({ limit })
    const width = Math.max(0, ...events.map(({ type }) => type.length))
    const lines = events.map(({ createdAt, type, id }) => `${createdAt}  ${type.padEnd(width)}  ${id}`)
    return { exitCode: 0, lines: lines.length === 0 ? ['There are no events.'] : lines, json: events }
  },
}

/** `purser events get`: shows one event with its payload. */
export const eventsGet: Command = {
  name: 'events get',
  summary: 'Show one event of the last 30 days.',
  positionals: ['<evt_…>'],
  options: { ...serviceOptions },
  notes: [],
  async run(args, io) {
    const id = idIn(args.positionals)
    const { purser } = await serviceOf(args, io)
    const event = await purser.events.get(id)
    return { exitCode: 0, lines: linesOf(event), json: event }
  },
}

/** `purser events resend`: delivers an event again, with the same id. */
export const eventsResend: Command = {
  name: 'events resend',
  summary: 'Send an event again with the same id: to all subscribed webhooks and listeners, or to one webhook.',
  positionals: ['<evt_…>'],
  options: { webhook: { value: '<wh_…>', about: 'only to this webhook, and to no listener' }, ...serviceOptions },
  notes: [],
  async run(args, io) {
    const { webhook } = args.options
    const id = idIn(args.positionals)
    const { purser } = await serviceOf(args, io)
    const resent = await purser.events.resend(id, webhook === undefined ? {} : { webhookId: webhook })
    const { deliveries } = resent
    const goal = webhook ?? `${deliveries} ${deliveries === 1 ? 'webhook' : 'webhooks'}, and all listeners`
    return { exitCode: 0, lines: [`${resent.eventId} is sent again to ${goal}.`], json: resent }
  },
}

function idIn([id = '']: readonly string[]): string {
  if (!/^evt_[0-9a-z]+$/.test(id)) throw new CommandError(`${id} is not an event id (evt_…).`)
  return id
}

function limitIn(text: string | undefined): number {
  if (text === undefined) return limitDefault
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > limitMax) throw new CommandError(`--limit must be a number from 1 to ${limitMax}.`)
  return limit
}

function linesOf({ id, type, createdAt, payload }: RecordedEvent): readonly string[] {
  return [`${type}  ${id}`, createdAt, '', ...JSON.stringify(payload, null, 2).split('\n')]
}
