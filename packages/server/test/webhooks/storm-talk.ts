import { fork } from 'node:child_process'
import path from 'node:path'
import { z } from 'zod'

/** Messages from the test to the receivers. */
export const TestMessage = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('keys'),
    /** By the receiver's name. */
    secrets: z.record(z.string(), z.string()),
    publicKeys: z.array(z.string()),
  }),
  z.object({ kind: z.literal('report') }),
])

const Report = z.object({
  name: z.string(),
  /** Those that came at least once. */
  eventIds: z.array(z.string()),
  /** Requests. */
  arrived: z.number(),
  /** Those that came again after acceptance. */
  duplicates: z.number(),
  /** Those whose signatures, time or id were wrong. */
  unsigned: z.number(),
  /** Those that came again with other bytes. */
  unlike: z.number(),
  restarts: z.number(),
})
export type Report = z.output<typeof Report>

const ReceiverMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('listening'), ports: z.record(z.string(), z.number()) }),
  z.object({ kind: z.literal('arrived'), count: z.number() }),
  z.object({ kind: z.literal('report'), places: z.array(Report) }),
])
type ReceiverMessage = z.output<typeof ReceiverMessage>

export interface StormReceivers {
  /** By name. */
  readonly ports: Readonly<Record<string, number>>
  send(message: z.input<typeof TestMessage>): void
  /** Resolves when all receivers together have got this many different events. */
  until(count: number): Promise<void>
  report(): Promise<readonly Report[]>
  stop(): void
}

/** Starts the receivers in a separate process. */
export async function stormReceivers(): Promise<StormReceivers> {
  const child = fork(path.join(import.meta.dirname, 'storm-receivers.ts'), [], { execArgv: [] })
  const receive = <T>(look: (received: ReceiverMessage) => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const listen = (message: unknown): void => {
        const found = look(ReceiverMessage.parse(message))
        if (found === undefined) return
        child.off('message', listen).off('exit', ended)
        resolve(found)
      }
      const ended = (): void => reject(new Error('the receivers ended'))
      child.on('message', listen).once('exit', ended)
    })
  const ports = await receive((received) => (received.kind === 'listening' ? received.ports : undefined))
  return {
    ports,
    send: (message) => void child.send(message),
    until: async (count) =>
      void (await receive((received) => (received.kind === 'arrived' && received.count >= count) || undefined)),
    report() {
      const message = receive((received) => (received.kind === 'report' ? received.places : undefined))
      child.send({ kind: 'report' })
      return message
    },
    stop: () => void child.kill('SIGKILL'),
  }
}
