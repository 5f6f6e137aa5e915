import { failPlatform } from './errors.ts'

/** Something of which only so many may be under way at once in this process. */
export interface Turn {
  /** Whoever names the same waits for each other; a tenant's own name keeps others out of its queue. */
  readonly name: string
  /** `half`: as many as half of the process's database connections. */
  readonly widthMax: number | 'half'
}

/** Runs work when all its turns have come, asked for one after the other. Whoever waits holds none of the later ones, and no connection. */
export type Turns = <T>(turns: readonly Turn[], work: () => Promise<T>) => Promise<T>

/** As long as one waits for a database connection. */
const waitMsMax = 10_000
/** Most that wait for one turn; each holds its request's body. */
const waitingMax = 1_000

interface Queue {
  running: number
  readonly waiting: Set<() => void>
}

/**
 * Queues for what many requests lock at once. One that waits for a row's lock holds a connection meanwhile, and a few dozen
 * that wait for one row leave none for anybody else; one that waits here holds nothing. First come, first served. Who waits for
 * too long, or finds too many there, is told to come again: 503 `service-unavailable`.
 */
export function createTurns(connectionsMax: number): Turns {
  const queues = new Map<string, Queue>()

  const enter = async ({ name, widthMax }: Turn): Promise<() => void> => {
    const width = widthMax === 'half' ? Math.max(1, Math.floor(connectionsMax / 2)) : widthMax
    const queue = queues.get(name) ?? { running: 0, waiting: new Set() }
    queues.set(name, queue)
    if (queue.running < width) queue.running += 1
    else await wait(queue)
    return () => leave(name, queue)
  }
  const leave = (name: string, queue: Queue): void => {
    const [next] = queue.waiting
    if (next === undefined) queue.running -= 1
    else next()
    if (queue.running === 0) queues.delete(name)
  }
  const inTurn: Turns = async (turns, work) => {
    const [first, ...others] = turns
    if (first === undefined) return work()
    const done = await enter(first)
    try {
      return await inTurn(others, work)
    } finally {
      done()
    }
  }
  return inTurn
}

/** Resolves when whoever leaves hands its place over. */
function wait({ waiting }: Queue): Promise<void> {
  if (waiting.size >= waitingMax) throw failPlatform('service-unavailable')
  return new Promise((resolve, reject) => {
    const come = (): void => {
      clearTimeout(patience)
      waiting.delete(come)
      resolve()
    }
    const patience = setTimeout(() => {
      waiting.delete(come)
      reject(failPlatform('service-unavailable'))
    }, waitMsMax)
    waiting.add(come)
  })
}
