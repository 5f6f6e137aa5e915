import { requestWaitLimits, type WaitLimits, waitForSlot } from './waiting-queue.ts'

/** A queue with a limit of concurrent work in this process. */
export interface Semaphore {
  /** Work with the same name shares the queue; include the tenant to keep others out of it. */
  readonly name: string
  /** `half`: about half of the database connections that one tenant may have (`createFairDb`). */
  readonly widthMax: number | 'half'
}

/**
 * Runs work when it has a slot in all queues, taken one after the other. While it waits it occupies none of the later ones, and no
 * connection.
 */
export type WithSemaphores = <T>(semaphores: readonly Semaphore[], work: () => Promise<T>) => Promise<T>

interface Queue {
  running: number
  readonly waiting: Set<() => void>
}

/**
 * Queues for work that locks the same rows. Work that waits for a row lock occupies a connection meanwhile, and a few dozen waiters for one
 * row leave none for others; work that waits here occupies nothing. First come, first served. A waiter that times out, or finds the queue
 * full, is refused: 503 `service-unavailable`.
 */
export function createSemaphores(connectionsMax: number, patience: WaitLimits = requestWaitLimits): WithSemaphores {
  const queues = new Map<string, Queue>()

  const acquire = async ({ name, widthMax }: Semaphore): Promise<() => void> => {
    const width = widthMax === 'half' ? Math.max(1, Math.floor(connectionsMax / 5)) : widthMax
    const queue = queues.get(name) ?? { running: 0, waiting: new Set() }
    queues.set(name, queue)
    if (queue.running < width) queue.running += 1
    else await waitForSlot(queue.waiting, patience)
    return () => release(name, queue)
  }
  const release = (name: string, queue: Queue): void => {
    const [next] = queue.waiting
    if (next === undefined) queue.running -= 1
    else next()
    if (queue.running === 0) queues.delete(name)
  }
  const withSemaphores: WithSemaphores = async (semaphores, work) => {
    const [first, ...others] = semaphores
    if (first === undefined) return work()
    const done = await acquire(first)
    try {
      return await withSemaphores(others, work)
    } finally {
      done()
    }
  }
  return withSemaphores
}
