import { setTimeout as delay } from 'node:timers/promises'
import type { Service } from '../crash/service.ts'

/** Chooses a process for each request, in turn among those that are ready, as a load balancer in front of the service does. */
export interface Balancer {
  /** The address for the next request; waits while no process is ready. */
  where(): Promise<string>
  /** Sends requests to a process once it is ready; resolves then. */
  add(service: Service): Promise<void>
  /** Resolves when the process is not ready any more, so that no further request goes to it. */
  leaves(service: Service): Promise<void>
  /** How many requests went to the process. */
  sentTo(service: Service): number
  stop(): Promise<void>
}

const pollMs = 50

export function createBalancer(): Balancer {
  const ready: string[] = []
  const sent = new Map<string, number>()
  const watches: Promise<void>[] = []
  let [turn, isOver] = [0, false]
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo() && !isOver) await delay(pollMs)
  }
  /** A process leaves forever: its successor has another port. */
  const watch = async ({ base }: Service): Promise<void> => {
    while (!isOver) {
      const isReady = await fetch(`${base}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (isReady && !ready.includes(base)) ready.push(base)
      if (!isReady && ready.includes(base)) return void ready.splice(ready.indexOf(base), 1)
      await delay(pollMs)
    }
  }
  return {
    async where() {
      await until(() => ready.length > 0)
      const base = ready[turn++ % ready.length] ?? ''
      sent.set(base, (sent.get(base) ?? 0) + 1)
      return base
    },
    async add(service) {
      watches.push(watch(service))
      await until(() => ready.includes(service.base))
    },
    leaves: (service) => until(() => !ready.includes(service.base)),
    sentTo: ({ base }) => sent.get(base) ?? 0,
    async stop() {
      isOver = true
      await Promise.all(watches)
    },
  }
}
