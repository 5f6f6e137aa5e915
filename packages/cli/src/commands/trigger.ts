import type { WebhookEventType } from '@purser/sdk/webhooks'
import { type Command, CommandError, type Outcome } from '../command.ts'
import { eventTypeIn } from '../event-type.ts'
import { type Service, serviceOf, serviceOptions } from '../service.ts'

/** `purser trigger`: sends a sample event to every webhook and listener. */
export const trigger: Command = {
  name: 'trigger',
  summary: 'Send a sample event to every webhook and listener. Test environment only.',
  positionals: ['[event]'],
  options: { list: { about: 'list all event types, and trigger nothing' }, ...serviceOptions },
  notes: ['Example: purser trigger payment.settled'],
  async run(args, io) {
    const [type] = args.positionals
    const isList = args.flags.has('list')
    if (isList === (type !== undefined)) throw new CommandError('Give either an event type or --list.')
    const wanted = type === undefined ? undefined : eventTypeIn(type)
    const service = await serviceOf(args, io)
    return wanted === undefined ? types(service) : triggered(service, wanted)
  },
}

async function types({ purser }: Service): Promise<Outcome> {
  const { types: known } = await purser.events.types()
  const json = known.map(({ type, payload }) => ({ type, payload }))
  return { exitCode: 0, lines: known.map(({ type }) => type), json }
}

async function triggered({ purser }: Service, type: WebhookEventType): Promise<Outcome> {
  const event = await purser.events.trigger({ type })
  return { exitCode: 0, lines: [`Triggered ${event.type}: ${event.id}`], json: event }
}
