import type { SignedDelivery } from '@purser/sdk'
import type { Asked, Command, Outside, Told } from '../command.ts'
import { eventTypeIn } from '../event-type.ts'
import { forward, type Received, receiverAt } from '../receiver.ts'
import { type Service, serviceOf, serviceOptions, shownKey } from '../service.ts'

/** `purser listen`: brings the organisation's events to a server on this machine, signed as webhooks are. */
export const listen: Command = {
  name: 'listen',
  summary: 'Forward events to a server on this machine, signed as webhooks are.',
  positionals: [],
  options: {
    'forward-to': { value: '<url>', about: 'where each event is posted; without it they are only shown' },
    events: { value: '<a,b>', about: 'types of events, with commas between them (all when left out)' },
    since: {
      value: '<time>',
      about: 'begin with what happened after that (ISO 8601; kept for 30 days), and not with now',
    },
    'print-secret': { about: 'print the signing secret, and do nothing else' },
    ...serviceOptions,
  },
  notes: [
    'Each event is posted once, in order, and the next when it is answered; nothing is tried again. The secret is the same each time.',
    'A connection that breaks is opened again, and goes on after the event that was forwarded last.',
    'Ctrl-C ends it with 0. It ends with 1 when the service says no, as it does once the key is revoked.',
  ],
  async run(asked, outside, tell) {
    for (const type of asked.options.events?.split(',') ?? []) eventTypeIn(type)
    const to = asked.options['forward-to']
    const receiver = to === undefined ? undefined : receiverAt(to)
    const service = await serviceOf(asked, outside)
    const { secret } = await service.purser.events.listener()
    if (asked.flags.has('print-secret')) return { exitCode: 0, lines: [secret], json: { secret } }
    const counts = { events: 0, failed: 0 }
    for await (const delivery of deliveries(asked, outside, {
      service,
      tell,
      greeting: greeting(service, secret, receiver),
    })) {
      counts.events += 1
      const received = receiver === undefined ? undefined : await delivered(outside, receiver, delivery)
      if (received === 'stopped') break
      if (received !== undefined && !isTaken(received)) counts.failed += 1
      tell(told(delivery, received))
    }
    return stopped(counts)
  },
}

interface Opening {
  readonly service: Service
  readonly tell: (told: Told) => void
  /** What is said when the stream is open for the first time. */
  readonly greeting: Told
}

/** The deliveries until the person wants an end. */
async function* deliveries(
  { options }: Asked,
  outside: Outside,
  { service, tell, greeting }: Opening,
): AsyncGenerator<SignedDelivery> {
  const signal = outside.untilStopped()
  let opened = 0
  const hooks = {
    signal,
    onOpen: () => tell(opened++ === 0 ? greeting : again),
    onBreak: (error: unknown) => tell(broken(error)),
  }
  try {
    yield* service.purser.events.stream({ events: options.events, from: options.since }, hooks)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

async function delivered(outside: Outside, receiver: URL, delivery: SignedDelivery): Promise<Received | 'stopped'> {
  const signal = outside.untilStopped()
  try {
    return await forward(outside.fetch, receiver, delivery, signal)
  } catch (error) {
    if (signal.aborted) return 'stopped'
    throw error
  }
}

function greeting({ baseUrl, apiKey, environment }: Service, secret: string, receiver: URL | undefined): Told {
  const goal = receiver === undefined ? 'They are only shown: --forward-to posts them.' : `They go to ${receiver.href}`
  return {
    lines: [
      `Listening to the ${environment} events of ${baseUrl} as ${shownKey(apiKey)}. Ctrl-C ends it.`,
      goal,
      `Signed with ${secret}, the same each time.`,
    ],
    json: { kind: 'listening', baseUrl, environment, forwardTo: receiver?.href ?? null, secret },
  }
}

const again: Told = { lines: ['Connected again.'], json: { kind: 'connected-again' } }

function broken(error: unknown): Told {
  const reason = error instanceof Error ? error.message : 'the stream ended'
  return { lines: [`Connecting again: ${reason}`], json: { kind: 'connecting-again', reason } }
}

function told({ eventId, type }: SignedDelivery, received: Received | undefined): Told {
  const time = new Date().toTimeString().slice(0, 8)
  if (received === undefined) return { lines: [`${time}  ${type}  ${eventId}`], json: { kind: 'event', eventId, type } }
  const { status, error, durationMs, responseBody } = received
  const isOk = isTaken(received)
  const head = `${time}  ${isOk ? '✓' : '✗'} ${status ?? '---'}  ${type}  ${eventId}  ${durationMs} ms`
  const why = isOk ? [] : [`          ${error ?? (responseBody.split('\n')[0] || 'no body')}`]
  return {
    lines: [head, ...why],
    json: {
      kind: 'delivery',
      eventId,
      type,
      ok: isOk,
      status: status ?? null,
      durationMs,
      error: error ?? null,
      responseBody,
    },
  }
}

function isTaken({ status }: Received): boolean {
  return status !== undefined && status >= 200 && status < 300
}

function stopped({ events, failed }: { readonly events: number; readonly failed: number }) {
  const lines = [`Stopped after ${events} ${events === 1 ? 'event' : 'events'}, ${failed} of them not taken.`]
  return { exitCode: 0 as const, lines, json: { kind: 'stopped', events, failed } }
}
