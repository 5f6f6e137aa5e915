import type { WebhookEventType } from '@purser/sdk/webhooks'
import { CannotDo, type Command, type Outcome } from '../command.ts'
import { eventTypeIn } from '../event-type.ts'
import { type Service, serviceOf, serviceOptions } from '../service.ts'

/** `purser trigger`: makes an event up, for every webhook and listener. */
export const trigger: Command = {
  name: 'trigger',
  summary: 'Make up an event, for every webhook and listener; in the test environment alone.',
  positionals: ['[event]'],
  options: { list: { about: 'list every type of event, and trigger nothing' }, ...serviceOptions },
  notes: ['Example: purser trigger payment.settled'],
  async run(asked, outside) {
    const [type] = asked.positionals
    const isList = asked.flags.has('list')
    if (isList === (type !== undefined)) throw new CannotDo('Give either the type of an event or --list.')
    const wanted = type === undefined ? undefined : eventTypeIn(type)
    const service = await serviceOf(asked, outside)
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
  return { exitCode: 0, lines: [`${event.type} is triggered: ${event.id}`], json: event }
}
