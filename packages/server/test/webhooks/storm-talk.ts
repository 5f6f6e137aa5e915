import { fork } from 'node:child_process'
import path from 'node:path'
import { z } from 'zod'

/** What the test tells the receivers. */
export const Told = z.discriminatedUnion('kind', [
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
  /** That came again after they had been taken. */
  duplicates: z.number(),
  /** Whose signatures, or time, or id were not right. */
  unsigned: z.number(),
  /** That came again with other bytes. */
  unlike: z.number(),
  restarts: z.number(),
})
export type Report = z.output<typeof Report>

const Heard = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('listening'), ports: z.record(z.string(), z.number()) }),
  z.object({ kind: z.literal('arrived'), count: z.number() }),
  z.object({ kind: z.literal('report'), places: z.array(Report) }),
])
type Heard = z.output<typeof Heard>

export interface StormReceivers {
  /** By name. */
  readonly ports: Readonly<Record<string, number>>
  tell(told: z.input<typeof Told>): void
  /** Resolves when so many different events have come to all of them together. */
  until(count: number): Promise<void>
  report(): Promise<readonly Report[]>
  stop(): void
}

/** Starts the receivers in a process of their own. */
export async function stormReceivers(): Promise<StormReceivers> {
  const child = fork(path.join(import.meta.dirname, 'storm-receivers.ts'), [], { execArgv: [] })
  const hear = <T>(look: (heard: Heard) => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const listen = (message: unknown): void => {
        const found = look(Heard.parse(message))
        if (found === undefined) return
        child.off('message', listen).off('exit', ended)
        resolve(found)
      }
      const ended = (): void => reject(new Error('the receivers ended'))
      child.on('message', listen).once('exit', ended)
    })
  const ports = await hear((heard) => (heard.kind === 'listening' ? heard.ports : undefined))
  return {
    ports,
    tell: (told) => void child.send(told),
    until: async (count) =>
      void (await hear((heard) => (heard.kind === 'arrived' && heard.count >= count) || undefined)),
    report() {
      const told = hear((heard) => (heard.kind === 'report' ? heard.places : undefined))
      child.send({ kind: 'report' })
      return told
    },
    stop: () => void child.kill('SIGKILL'),
  }
}
