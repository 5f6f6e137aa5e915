import type { SignedDelivery } from '@purser/sdk'
import type { Args, Command, Io, Output } from '../command.ts'
import { eventTypeIn } from '../event-type.ts'
import { forward, type Received, receiverAt } from '../receiver.ts'
import { type Service, serviceOf, serviceOptions, shownKey } from '../service.ts'

/** `purser listen`: forwards the organisation's events to a server on this machine, signed like webhooks. */
export const listen: Command = {
  name: 'listen',
  summary: 'Forward events to a server on this machine, signed like webhooks.',
  positionals: [],
  options: {
    'forward-to': { value: '<url>', about: 'where each event is posted; without it, events are only shown' },
    events: { value: '<a,b>', about: 'event types, separated by commas (default: all)' },
    since: {
      value: '<time>',
      about: 'start after this time (ISO 8601, at most 30 days ago; default: now)',
    },
    'print-secret': { about: 'print the signing secret, and do nothing else' },
    ...serviceOptions,
  },
  notes: [
    'Each event is posted once, in order, after the one before was answered. Nothing is retried. The secret does not change.',
    'A broken connection is reopened and resumes after the last forwarded event.',
    'Ctrl-C exits with 0. A refusal by the service, such as a revoked key, exits with 1.',
  ],
  async run(args, io, write) {
    for (const type of args.options.events?.split(',') ?? []) eventTypeIn(type)
    const to = args.options['forward-to']
    const receiver = to === undefined ? undefined : receiverAt(to)
    const service = await serviceOf(args, io)
    const { secret } = await service.purser.events.listener()
    if (args.flags.has('print-secret')) return { exitCode: 0, lines: [secret], json: { secret } }
    const counts = { events: 0, failed: 0 }
    for await (const delivery of deliveries(args, io, {
      service,
      write,
      greeting: greeting(service, secret, receiver),
    })) {
      counts.events += 1
      const received = receiver === undefined ? undefined : await delivered(io, receiver, delivery)
      if (received === 'stopped') break
      if (received !== undefined && !isTaken(received)) counts.failed += 1
      write(outputOf(delivery, received))
    }
    return stopped(counts)
  },
}

interface Opening {
  readonly service: Service
  readonly write: (output: Output) => void
  /** Printed when the stream opens for the first time. */
  readonly greeting: Output
}

/** Yields deliveries until the program is stopped. */
async function* deliveries(
  { options }: Args,
  io: Io,
  { service, write, greeting }: Opening,
): AsyncGenerator<SignedDelivery> {
  const signal = io.untilStopped()
  let opened = 0
  const hooks = {
    signal,
    onOpen: () => write(opened++ === 0 ? greeting : again),
    onBreak: (error: unknown) => write(broken(error)),
  }
  try {
    yield* service.purser.events.stream({ events: options.events, from: options.since }, hooks)
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

async function delivered(io: Io, receiver: URL, delivery: SignedDelivery): Promise<Received | 'stopped'> {
  const signal = io.untilStopped()
  try {
    return await forward(io.fetch, receiver, delivery, signal)
  } catch (error) {
    if (signal.aborted) return 'stopped'
    throw error
  }
}

function greeting({ baseUrl, apiKey, environment }: Service, secret: string, receiver: URL | undefined): Output {
  const goal =
    receiver === undefined
      ? 'Events are only shown. Use --forward-to to post them.'
      : `Events are posted to ${receiver.href}`
  return {
    lines: [
      `Listening to the ${environment} events of ${baseUrl} as ${shownKey(apiKey)}. Press Ctrl-C to stop.`,
      goal,
      `Signed with ${secret}, which does not change.`,
    ],
    json: { kind: 'listening', baseUrl, environment, forwardTo: receiver?.href ?? null, secret },
  }
}

const again: Output = { lines: ['Reconnected.'], json: { kind: 'connected-again' } }

function broken(error: unknown): Output {
  const reason = error instanceof Error ? error.message : 'the stream ended'
  return { lines: [`Reconnecting: ${reason}`], json: { kind: 'connecting-again', reason } }
}

function outputOf({ eventId, type }: SignedDelivery, received: Received | undefined): Output {
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
  const lines = [`Stopped after ${events} ${events === 1 ? 'event' : 'events'}, ${failed} not accepted.`]
  return { exitCode: 0 as const, lines, json: { kind: 'stopped', events, failed } }
}
